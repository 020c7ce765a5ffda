#include "runtime/text/marked_text.h"

#include <algorithm>
#include <cstdint>

namespace minimind {
namespace {

std::size_t offset_in(const MarkedText& text, std::string_view part) {
  return static_cast<std::size_t>(part.data() - text.bytes.data());
}

}  // namespace

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

MarkedText MarkedText::all(std::string text) {
  MarkedText marked(std::move(text));
  marked.marks.add(0, marked.bytes.size());
  return marked;
}

void MarkedText::append_part(const MarkedText& text, std::string_view part) {
  const std::size_t begin = offset_in(text, part);
  marks.add(text.marks, begin, begin + part.size(), bytes.size());
  bytes += part;
}

void MarkedText::append_instead(const MarkedText& text, std::string_view part, std::string_view replacement) {
  const std::size_t begin = offset_in(text, part), at = bytes.size();
  bytes += replacement;
  if (text.marks.first_from(begin) < begin + part.size()) marks.add(at, bytes.size());
}

MarkedText MarkedText::part(std::string_view part) const {
  MarkedText result;
  result.append_part(*this, part);
  return result;
}

}  // namespace minimind
