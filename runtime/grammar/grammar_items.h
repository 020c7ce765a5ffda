#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace minimind {

// A position in a grammar's symbols, and the frame to return to at the end of its rule.
struct GrammarItem {
  std::uint32_t symbol;
  std::uint32_t frame;

  auto operator<=>(const GrammarItem&) const = default;
};

// Lists of items, each stored once under a number, so that lists are equal if their numbers are.
class GrammarItemLists {
 public:
  // `items` must be sorted and without duplicates.
  std::uint32_t intern(std::span<const GrammarItem> items);

  std::span<const GrammarItem> operator[](std::uint32_t list) const {
    return {items_.data() + begins_[list], begins_[list + 1] - begins_[list]};
  }
  std::size_t size() const { return begins_.size() - 1; }
  std::size_t items() const { return items_.size(); }
  void clear();

 private:
  void grow();
  std::size_t slot_of(std::span<const GrammarItem> items) const;

  std::vector<GrammarItem> items_;
  std::vector<std::size_t> begins_{0};
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64, none);  // open addressing; a power of two
  static constexpr std::uint32_t none = ~0u;
};

// A set of items that is emptied often.
class GrammarItemSet {
 public:
  // Adds an item; returns true if it is new.
  bool insert(GrammarItem item);
  void clear();

 private:
  void place(std::uint64_t key);

  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(64, none);  // open addressing; a power of two
  std::vector<std::uint64_t> keys_;
};

}  // namespace minimind
