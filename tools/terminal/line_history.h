#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// What was entered before, and where the arrows and the search stand in it. The line that is being typed comes after
// the last entry and is kept while the arrows are among the entries.
class LineHistory {
 public:
  static constexpr std::size_t most_entries = 1000;

  // Puts an entry after the others, unless it equals the last one.
  void add(std::u32string entry);

  // Leaves the entries: the next line is typed.
  void leave();

  // The entry before or after the one that is shown, or the line that was being typed; std::nullopt if there is none.
  // `line` is what is shown now.
  std::optional<std::u32string> older(const std::u32string& line);
  std::optional<std::u32string> newer();

  // The number of the last entry before number `end` that holds `part`; std::nullopt if none does.
  std::optional<std::size_t> find(std::u32string_view part, std::size_t end) const;

  // Goes to entry `number`, as the arrows do. `line` is what is shown or was before the entry was searched for.
  const std::u32string& go_to(std::size_t number, const std::u32string& line);

  const std::u32string& entry(std::size_t number) const { return entries_[number]; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::deque<std::u32string> entries_;
  std::size_t at_ = 0;  // entries_.size(): the line that is being typed
  std::u32string typed_;
};

}  // namespace minimind
