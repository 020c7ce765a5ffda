#include "runtime/grammar/json_characters.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace minimind {
namespace {

using Spelling = std::vector<ByteSet>;

// The escapes of two bytes: the letter, and the character that it means.
constexpr std::array<std::pair<char, char32_t>, 8> letter_escapes{
    {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', '\b'}, {'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}}};

ByteSet byte(char c) {
  return ByteSet().set(static_cast<unsigned char>(c));
}

ByteSet hexadecimal_digits(unsigned first, unsigned last) {
  ByteSet set;
  for (unsigned digit = first; digit <= last; ++digit) {
    set.set(static_cast<unsigned char>("0123456789abcdef"[digit]));
    set.set(static_cast<unsigned char>("0123456789ABCDEF"[digit]));
  }
  return set;
}

// The numbers of a range in `digits` hexadecimal digits.
void add_hexadecimal(std::uint32_t first, std::uint32_t last, int digits, const Spelling& before,
                     std::vector<Spelling>& result) {
  if (digits == 0) {
    result.push_back(before);
    return;
  }
  const int shift = 4 * (digits - 1);
  const std::uint32_t rest = (std::uint32_t{1} << shift) - 1;
  const std::uint32_t low = first >> shift, high = last >> shift;
  const auto with = [&](std::uint32_t from, std::uint32_t to, std::uint32_t begin, std::uint32_t end) {
    Spelling next = before;
    next.push_back(hexadecimal_digits(from, to));
    add_hexadecimal(begin, end, digits - 1, next, result);
  };
  if (low == high) return with(low, low, first & rest, last & rest);
  std::uint32_t from = low, to = high;
  if ((first & rest) != 0) {
    with(low, low, first & rest, rest);
    ++from;
  }
  if ((last & rest) != rest) --to;
  if (from <= to) with(from, to, 0, rest);
  if ((last & rest) != rest) with(high, high, 0, last & rest);
}

Spelling escape_u(Spelling before) {
  before.push_back(byte('\\'));
  before.push_back(byte('u'));
  return before;
}

void add_pairs(std::uint32_t high_first, std::uint32_t high_last, std::uint32_t low_first, std::uint32_t low_last,
               std::vector<Spelling>& result) {
  std::vector<Spelling> highs;
  add_hexadecimal(0xD800 + high_first, 0xD800 + high_last, 4, escape_u({}), highs);
  for (Spelling& high : highs) {
    add_hexadecimal(0xDC00 + low_first, 0xDC00 + low_last, 4, escape_u(std::move(high)), result);
  }
}

// As \uHHHH, or as two of them beyond U+FFFF.
void add_escapes(char32_t first, char32_t last, std::vector<Spelling>& result) {
  constexpr std::uint32_t all = 0x3FF;
  if (first < 0x10000) add_hexadecimal(first, std::min<char32_t>(last, 0xFFFF), 4, escape_u({}), result);
  if (last < 0x10000) return;
  std::uint32_t from = (first < 0x10000 ? 0x10000 : first) - 0x10000, to = last - 0x10000;
  if (from >> 10 == to >> 10) return add_pairs(from >> 10, from >> 10, from & all, to & all, result);
  std::uint32_t high_first = from >> 10, high_last = to >> 10;
  if ((from & all) != 0) {
    add_pairs(high_first, high_first, from & all, all, result);
    ++high_first;
  }
  const bool partial = (to & all) != all;
  if (high_first + (partial ? 1 : 0) <= high_last) {
    add_pairs(high_first, partial ? high_last - 1 : high_last, 0, all, result);
  }
  if (partial) add_pairs(high_last, high_last, 0, to & all, result);
}

}  // namespace

std::vector<std::vector<ByteSet>> json_character_spellings(const CodePoints& set, bool every_escape) {
  const CodePoints needs_escape = CodePoints(0, 0x1F).add('"').add('\\');
  std::vector<Spelling> result = utf8_sequences(set.without(needs_escape));
  ByteSet letters;
  CodePoints rest = every_escape ? set : set.without(CodePoints(needs_escape).add(0x80, last_code_point).complement());
  for (const auto& [letter, character] : letter_escapes) {
    if (!rest.contains(character)) continue;
    letters.set(static_cast<unsigned char>(letter));
    if (!every_escape) rest = rest.without(CodePoints().add(character));
  }
  if (letters.any()) result.push_back({byte('\\'), letters});
  for (const CodePoints::Range& range : rest.ranges()) add_escapes(range.first, range.last, result);
  return result;
}

}  // namespace minimind
