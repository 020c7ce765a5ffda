#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace minimind {

// Sets of places from 0 to a size, with a cost of each. Sets share the parts that they have in common, and equal sets
// have equal numbers, so that adding or removing a place takes logarithmic time and memory.
class PlaceSets {
 public:
  using Set = std::uint32_t;  // 0: empty
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  // The least cost of any place, and of those that are needed.
  struct Least {
    std::uint64_t any = none, needed = none;
  };

  explicit PlaceSets(std::size_t places = 0) : places_(places), leaves_(places) {}

  // Returns the set of all places; `costs` has one for each.
  Set all(const std::vector<Least>& costs) { return all(costs, 0, places_); }
  Set with(Set set, std::size_t place, Least cost) { return replaced(set, 0, places_, place, leaf(place, cost)); }
  Set without(Set set, std::size_t place) { return replaced(set, 0, places_, place, 0); }
  bool has(Set set, std::size_t place) const;
  // Of the places from `from` to before `to`.
  Least least(Set set, std::size_t from, std::size_t to) const { return least(set, 0, places_, from, to); }
  std::size_t size(Set set) const { return nodes_[set].size; }
  // Returns the sum of Least::any of the first places, which the set must have.
  std::uint64_t sum_of_first(Set set, std::size_t count) const;

 private:
  struct Node {
    Least least;
    Set left = 0, right = 0;
    std::uint32_t size = 0;
    std::uint64_t sum = 0;  // of Least::any
  };

  static std::size_t middle(std::size_t begin, std::size_t end) { return begin + (end - begin) / 2; }
  Set leaf(std::size_t place, Least cost);
  Set join(Set left, Set right);
  Set all(const std::vector<Least>& costs, std::size_t begin, std::size_t end);
  Set replaced(Set set, std::size_t begin, std::size_t end, std::size_t place, Set leaf);
  Least least(Set set, std::size_t begin, std::size_t end, std::size_t from, std::size_t to) const;

  std::size_t places_;
  std::vector<Set> leaves_;  // [places], 0 until it is in a set
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::unordered_map<std::uint64_t, Set> joined_;  // by both halves
};

}  // namespace minimind
