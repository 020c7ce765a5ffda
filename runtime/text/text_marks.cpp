#include "runtime/text/text_marks.h"

#include <algorithm>
#include <cstdint>

namespace minimind {

void TextMarks::add(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!ranges_.empty() && begin <= ranges_.back().end) {
    ranges_.back().end = std::max(ranges_.back().end, end);
  } else {
    ranges_.push_back({begin, end});
  }
}

void TextMarks::add(const TextMarks& other, std::size_t begin, std::size_t end, std::size_t at) {
  auto range = std::ranges::upper_bound(other.ranges_, begin, {}, &Range::end);
  for (; range != other.ranges_.end() && range->begin < end; ++range) {
    add(at + std::max(range->begin, begin) - begin, at + std::min(range->end, end) - begin);
  }
}

std::size_t TextMarks::first_from(std::size_t position) const {
  const auto range = std::ranges::upper_bound(ranges_, position, {}, &Range::end);
  return range == ranges_.end() ? SIZE_MAX : std::max(range->begin, position);
}

}  // namespace minimind
