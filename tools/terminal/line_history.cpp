#include "tools/terminal/line_history.h"

#include <utility>

namespace minimind {

void LineHistory::add(std::u32string entry) {
  if (entries_.empty() || entries_.back() != entry) entries_.push_back(std::move(entry));
  if (entries_.size() > most_entries) entries_.pop_front();
  leave();
}

void LineHistory::leave() {
  at_ = entries_.size();
  typed_.clear();
}

std::optional<std::u32string> LineHistory::older(const std::u32string& line) {
  if (at_ == 0) return std::nullopt;
  return go_to(at_ - 1, line);
}

std::optional<std::u32string> LineHistory::newer() {
  if (at_ == entries_.size()) return std::nullopt;
  return ++at_ == entries_.size() ? typed_ : entries_[at_];
}

std::optional<std::size_t> LineHistory::find(std::u32string_view part, std::size_t end) const {
  while (end-- > 0) {
    if (entries_[end].find(part) != std::u32string::npos) return end;
  }
  return std::nullopt;
}

const std::u32string& LineHistory::go_to(std::size_t number, const std::u32string& line) {
  if (at_ == entries_.size()) typed_ = line;
  at_ = number;
  return entries_[at_];
}

}  // namespace minimind
