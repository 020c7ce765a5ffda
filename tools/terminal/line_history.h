#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// The earlier entries, and the current position of the arrows and the search. The line being typed is after the last
// entry and is kept while the arrows move among the entries.
class LineHistory {
 public:
  static constexpr std::size_t most_entries = 1000;

  // Appends an entry, unless it equals the last one.
  void add(std::u32string entry);

  // Returns to the line being typed.
  void leave();

  // Returns the entry before or after the shown one, or the line being typed; std::nullopt if there is none. `line` is
  // the shown text.
  std::optional<std::u32string> older(const std::u32string& line);
  std::optional<std::u32string> newer();

  // Returns the number of the last entry before number `end` that contains `part`; std::nullopt if none does.
  std::optional<std::size_t> find(std::u32string_view part, std::size_t end) const;

  // Moves to entry `number`, as the arrows do. `line` is the text shown before, without the results of a search.
  const std::u32string& go_to(std::size_t number, const std::u32string& line);

  const std::u32string& entry(std::size_t number) const { return entries_[number]; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::deque<std::u32string> entries_;
  std::size_t at_ = 0;  // entries_.size(): the line being typed
  std::u32string typed_;
};

}  // namespace minimind
