#include "runtime/text/code_points.h"

#include <algorithm>
#include <iterator>

#include "runtime/text/utf8.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr char32_t first_surrogate = 0xD800, last_surrogate = 0xDFFF;

ByteSet byte_range(char first, char last) {
  ByteSet set;
  for (std::size_t byte = static_cast<unsigned char>(first); byte <= static_cast<unsigned char>(last); ++byte) {
    set.set(byte);
  }
  return set;
}

// Splits a range where the length of its UTF-8 changes, and so that within a part the range of every byte is
// independent of the bytes before it.
void add_sequences(char32_t first, char32_t last, std::vector<std::vector<ByteSet>>& sequences) {
  const auto cut_after = [&](char32_t end) {
    add_sequences(first, end, sequences);
    add_sequences(end + 1, last, sequences);
  };
  for (const char32_t end : {U'\x7F', U'\x7FF', U'\xFFFF'}) {
    if (first <= end && end < last) return cut_after(end);
  }
  if (last >= 0x80) {
    for (char32_t low = 0x3F; low < 0x40000; low = low << 6 | 0x3F) {
      if ((first & ~low) == (last & ~low)) break;
      if ((first & low) != 0) return cut_after(first | low);
      if ((last & low) != low) return cut_after((last & ~low) - 1);
    }
  }
  std::string from, to;
  append_utf8(from, first);
  append_utf8(to, last);
  std::vector<ByteSet> sequence;
  for (std::size_t i = 0; i < from.size(); ++i) sequence.push_back(byte_range(from[i], to[i]));
  sequences.push_back(std::move(sequence));
}

}  // namespace

CodePoints::CodePoints(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  for (const Range& range : ranges) add(range.first, range.last);
}

CodePoints& CodePoints::add(char32_t first, char32_t last) {
  if (first < first_surrogate) add_range(first, std::min<char32_t>(last, first_surrogate - 1));
  if (last > last_surrogate) add_range(std::max<char32_t>(first, last_surrogate + 1), last);
  return *this;
}

CodePoints& CodePoints::add(const CodePoints& other) {
  for (const Range& range : other.ranges_) add_range(range.first, range.last);
  return *this;
}

void CodePoints::add_range(char32_t first, char32_t last) {
  const auto ends_before = [](const Range& range, char32_t point) { return range.last + 1 < point; };
  auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first, ends_before);
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

CodePoints CodePoints::complement() const {
  CodePoints result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (next < range.first) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= last_code_point) result.add(next, last_code_point);
  return result;
}

CodePoints CodePoints::without(const CodePoints& other) const {
  return complement().add(other).complement();
}

bool CodePoints::contains(char32_t code_point) const {
  const auto range = std::lower_bound(ranges_.begin(), ranges_.end(), code_point,
                                      [](const Range& its, char32_t point) { return its.last < point; });
  return range != ranges_.end() && range->first <= code_point;
}

std::u32string code_points_of(std::string_view utf8) {
  std::u32string result;
  while (!utf8.empty()) {
    const Utf8Char next = first_utf8(utf8);
    result += next.code_point;
    utf8.remove_prefix(next.size);
  }
  return result;
}

std::optional<std::uint32_t> hexadecimal(std::string_view digits) {
  return number_in<std::uint32_t>(digits, 16);
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, starts_character));
}

TextPlace place_of(std::size_t byte, std::string_view utf8) {
  const std::string_view before = utf8.substr(0, std::min(byte, utf8.size()));
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  return {1 + static_cast<std::size_t>(std::ranges::count(before, '\n')), 1 + count_characters(in_line)};
}

std::vector<std::vector<ByteSet>> utf8_sequences(const CodePoints& set) {
  std::vector<std::vector<ByteSet>> sequences;
  for (const CodePoints::Range& range : set.ranges()) add_sequences(range.first, range.last, sequences);
  // One set for all of ASCII, and one for the last bytes of characters with equal first bytes.
  std::vector<std::vector<ByteSet>> merged;
  for (std::vector<ByteSet>& sequence : sequences) {
    const bool joins = !merged.empty() && merged.back().size() == sequence.size() &&
                       std::equal(sequence.begin(), std::prev(sequence.end()), merged.back().begin());
    if (joins) {
      merged.back().back() |= sequence.back();
    } else {
      merged.push_back(std::move(sequence));
    }
  }
  return merged;
}

}  // namespace minimind
