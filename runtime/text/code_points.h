#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

constexpr char32_t last_code_point = 0x10FFFF;

// Returns whether a number is that of a character: surrogates are not.
constexpr bool is_scalar_value(char32_t number) {
  return number < 0xD800 || (number > 0xDFFF && number <= last_code_point);
}

// A set of characters: Unicode scalar values, so without surrogates.
class CodePoints {
 public:
  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };

  CodePoints() = default;
  CodePoints(char32_t first, char32_t last) { add(first, last); }
  explicit CodePoints(std::vector<Range> ranges);  // in any order

  static CodePoints all() { return CodePoints(0, last_code_point); }

  // Adds the characters from first to last, both included. first <= last <= last_code_point.
  CodePoints& add(char32_t first, char32_t last);
  CodePoints& add(char32_t code_point) { return add(code_point, code_point); }
  CodePoints& add(const CodePoints& other);

  CodePoints complement() const;
  CodePoints without(const CodePoints& other) const;
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code_point) const;

  // In order, neither touching nor overlapping.
  const std::vector<Range>& ranges() const& { return ranges_; }
  std::vector<Range> ranges() && { return std::move(ranges_); }

  bool operator==(const CodePoints&) const = default;

 private:
  void add_range(char32_t first, char32_t last);

  std::vector<Range> ranges_;
};

// Returns the characters of UTF-8; malformed bytes are U+FFFD.
std::u32string code_points_of(std::string_view utf8);

// Returns the number of up to 8 hexadecimal digits; std::nullopt for any other text.
std::optional<std::uint32_t> hexadecimal(std::string_view digits);

std::size_t count_characters(std::string_view utf8);

// A place in a text for people: both from 1, the column in characters.
struct TextPlace {
  std::size_t line = 1, column = 1;
};
TextPlace place_of(std::size_t byte, std::string_view utf8);

using ByteSet = std::bitset<256>;

// Returns the set as UTF-8: a character is in it if its bytes are, one by one, in the sets of one of the sequences. All
// characters of one byte share the first sequence; the others start with different bytes or have equal length.
std::vector<std::vector<ByteSet>> utf8_sequences(const CodePoints& set);

}  // namespace minimind
