#include "runtime/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace minimind::jinja {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

bool is_in(std::string_view character, const std::optional<std::string_view>& set) {
  if (!set) return is_python_space(first_utf8(character).code_point);
  return set->find(character) != std::string_view::npos;  // whole characters: UTF-8 synchronises itself
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit, Budget& budget) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = stripped(text, {}, Ends::left, budget); !rest.empty();) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(rest);
      break;
    }
    std::size_t end = 0;
    while (end < rest.size()) {
      const Utf8Char character = first_utf8(rest.substr(end));
      if (is_python_space(character.code_point)) break;
      end += character.size;
    }
    parts.push_back(rest.substr(0, end));
    rest = stripped(rest.substr(end), {}, Ends::left, budget);
  }
  return parts;
}

std::vector<std::string_view> split_at_space_from_right(std::string_view text, std::int64_t limit, Budget& budget) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = stripped(text, {}, Ends::right, budget); !rest.empty();) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(rest);
      break;
    }
    std::size_t begin = rest.size();
    while (begin > 0) {
      const Utf8Char character = last_utf8(rest.substr(0, begin));
      if (is_python_space(character.code_point)) break;
      begin -= character.size;
    }
    parts.push_back(rest.substr(begin));
    rest = stripped(rest.substr(0, begin), {}, Ends::right, budget);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

void check_separator(const std::optional<std::string_view>& separator) {
  if (separator && separator->empty()) throw Failure("cannot split at an empty separator");
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::size_t byte_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && seen++ == index) break;
  }
  return at;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = first_utf8(text.substr(at)).size;
    characters.push_back(text.substr(at, size));
    at += size;
  }
  return characters;
}

bool is_python_space(char32_t character) {
  return is_white_space(character) || (character >= 0x1C && character <= 0x1F);
}

bool is_python_word(char32_t character) {
  const CharClass of_character = class_of(character);
  return character == U'_' || of_character == CharClass::letter || of_character == CharClass::number;
}

bool is_printable(char32_t character) {
  if (character == U' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string_view stripped(std::string_view text, const std::optional<std::string_view>& set, Ends ends,
                          Budget& budget) {
  const std::size_t size = text.size();
  while (ends != Ends::right && !text.empty()) {
    const std::size_t first = first_utf8(text).size;
    if (!is_in(text.substr(0, first), set)) break;
    text.remove_prefix(first);
  }
  while (ends != Ends::left && !text.empty()) {
    const std::size_t last = last_utf8(text).size;
    if (!is_in(text.substr(text.size() - last), set)) break;
    text.remove_suffix(last);
  }
  budget.scan((size - text.size()) * (set ? set->size() + 1 : 1));
  return text;
}

std::optional<std::size_t> find_first(std::string_view text, std::string_view wanted, std::size_t from_byte) {
  if (wanted.empty()) return from_byte;
  const void* const found = memmem(text.data() + from_byte, text.size() - from_byte, wanted.data(), wanted.size());
  if (!found) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::optional<std::size_t> find_last(std::string_view text, std::string_view wanted, Budget& budget) {
  if (wanted.empty()) return text.size();
  if (wanted.size() > text.size()) return std::nullopt;
  budget.scan(text.size());
  for (std::size_t at = text.size() - wanted.size() + 1; at-- > 0;) {
    if (text[at] != wanted[0]) continue;
    budget.scan(wanted.size() * 8);  // there is no memmem from the right: what repeats costs its square
    if (text.compare(at, wanted.size(), wanted) == 0) return at;
  }
  return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, const std::optional<std::string_view>& separator,
                                    std::int64_t limit, Budget& budget) {
  check_separator(separator);
  if (!separator) return split_at_space(text, limit, budget);
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const auto found = find_first(text, *separator, at);
    if (!found) break;
    parts.push_back(text.substr(at, *found - at));
    at = *found + separator->size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text, const std::optional<std::string_view>& separator,
                                               std::int64_t limit, Budget& budget) {
  check_separator(separator);
  if (!separator) return split_at_space_from_right(text, limit, budget);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const auto found = find_last(text, *separator, budget);
    if (!found) break;
    parts.push_back(text.substr(*found + separator->size()));
    text = text.substr(0, *found);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    const std::size_t end = at;
    at += character.size;
    if (!ends_line(character.code_point)) continue;
    if (character.code_point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::size_t count_occurrences(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return count_characters(text) + 1;
  std::size_t count = 0;
  for (auto found = find_first(text, wanted); found; found = find_first(text, wanted, *found + wanted.size())) ++count;
  return count;
}

std::string replaced(std::string_view text, std::string_view old_text, std::string_view new_text, std::int64_t limit,
                     Budget& budget) {
  const std::size_t occurrences = count_occurrences(text, old_text);
  const std::size_t times = limit < 0 ? occurrences : std::min(occurrences, static_cast<std::size_t>(limit));
  if (times > 0 && new_text.size() > (std::size_t{1} << 40) / times) budget.make(std::size_t{1} << 40);
  budget.make(text.size() + times * new_text.size());
  std::string result;
  std::size_t at = 0;
  for (std::size_t done = 0; done < times; ++done) {
    // An empty text is found before each character and at the end.
    const std::size_t from = old_text.empty() && done > 0 ? at + first_utf8(text.substr(at)).size : at;
    const std::size_t found = *find_first(text, old_text, from);
    result.append(text, at, found - at).append(new_text);
    at = found + old_text.size();
  }
  return result.append(text, at);
}

std::string quoted_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    const char32_t c = character.code_point;
    if (c == '\n' || c == '\r' || c == '\t') {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c == static_cast<unsigned char>(quote) || c == '\\') {
      result.append("\\").append(1, static_cast<char>(c));
    } else if (is_printable(c)) {
      result.append(text, at, character.size);
    } else {
      std::array<char, 16> escape;
      const char* const format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape.data(), escape.size(), format, static_cast<unsigned>(c));
      result += escape.data();
    }
    at += character.size;
  }
  return result + quote;
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const double magnitude = std::fabs(number);
  // Python writes an exponent when it is below -4 or above 15.
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                     scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer.data(), written.ptr);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string escaped_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '"':
        result += "&#34;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// The case mappings of text.h: Unicode's full ones (SpecialCasing.txt), derived from utf8proc's simple mappings
// and its full case folding. The rules were found to give what Python 3.11 gives for every code point.

namespace {

using Folded = std::array<utf8proc_int32_t, 8>;

constexpr char32_t capital_i_with_dot = 0x130;
constexpr char32_t small_sharp_s = 0xDF;
constexpr char32_t capital_sharp_s = 0x1E9E;
constexpr char32_t capital_sigma = 0x3A3;
constexpr char32_t small_iota = 0x3B9;
constexpr char32_t iota_below = 0x345;

utf8proc_int32_t signed_of(char32_t c) {
  return static_cast<utf8proc_int32_t>(c);
}
char32_t simple_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(signed_of(c)));
}
char32_t simple_title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(signed_of(c)));
}

// The characters that `c` folds to, their number; 1 for what has no special casing.
std::size_t fold(char32_t c, Folded& folded) {
  if (c < 0x80 || c == capital_i_with_dot || c == capital_sharp_s) return 1;
  int last_class = 0;
  const auto count = utf8proc_decompose_char(signed_of(c), folded.data(), folded.size(),
                                             static_cast<utf8proc_option_t>(UTF8PROC_CASEFOLD), &last_class);
  return count < 1 ? 1 : std::min(static_cast<std::size_t>(count), folded.size());
}

void append_upper(std::string& text, char32_t c) {
  Folded folded;
  const std::size_t count = fold(c, folded);
  if (count == 1) return append_utf8(text, simple_upper(c));
  for (std::size_t i = 0; i < count; ++i) append_utf8(text, simple_upper(static_cast<char32_t>(folded[i])));
}

void append_lower(std::string& text, char32_t c) {
  if (c == capital_sigma) throw Failure("lowering a capital sigma is not supported");
  if (c == capital_i_with_dot) {
    text += "i\u0307";
  } else {
    append_utf8(text, static_cast<char32_t>(utf8proc_tolower(signed_of(c))));
  }
}

bool is_of(char32_t c, utf8proc_category_t category) {
  return utf8proc_category(signed_of(c)) == category;
}

void append_title(std::string& text, char32_t c) {
  Folded folded;
  const std::size_t count = fold(c, folded);
  const bool has_simple_title = simple_title(c) != c && c != small_sharp_s;  // that is capital_sharp_s in utf8proc
  if (count == 1 || has_simple_title || is_of(c, UTF8PROC_CATEGORY_LT)) return append_utf8(text, simple_title(c));
  bool raised = false;
  for (std::size_t i = 0; i < count; ++i) {
    char32_t part = static_cast<char32_t>(folded[i]);
    if (!raised) {
      raised = simple_title(part) != part;
      part = simple_title(part);
    } else if (part == small_iota) {
      part = iota_below;
    }
    append_utf8(text, part);
  }
}

struct CharRange {
  char32_t first, last;
};

// Other_Uppercase and Other_Lowercase of Unicode 14 (PropList.txt), which Python 3.11 has: upper and lower case beyond
// the categories Lu and Ll.
constexpr std::array<CharRange, 5> other_uppercase = {
    {{0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}}};
constexpr std::array<CharRange, 24> other_lowercase = {
    {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
     {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
     {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
     {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}}};

template <std::size_t n>
bool is_in(char32_t c, const std::array<CharRange, n>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](CharRange range) { return c >= range.first && c <= range.last; });
}

bool is_uppercase(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_LU) || is_in(c, other_uppercase);
}
bool is_lowercase(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_LL) || is_in(c, other_lowercase);
}
bool is_cased(char32_t c) {
  return is_uppercase(c) || is_lowercase(c) || is_of(c, UTF8PROC_CATEGORY_LT);
}

template <class Use>
void for_each_character(std::string_view text, Use use) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    use(character.code_point);
    at += character.size;
  }
}

// Whether all cased characters, and one at least, are `wanted`.
bool all_cased_are(std::string_view text, bool (*wanted)(char32_t)) {
  bool some = false;
  bool others = false;
  for_each_character(text, [&](char32_t c) { (wanted(c) ? some : others) |= is_cased(c); });
  return some && !others;
}

bool begins_word(char32_t c) {
  return is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

}  // namespace

std::string upper(std::string_view text) {
  std::string result;
  for_each_character(text, [&](char32_t c) { append_upper(result, c); });
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  for_each_character(text, [&](char32_t c) { append_lower(result, c); });
  return result;
}

std::string capitalized(std::string_view text) {
  std::string result;
  bool first = true;
  for_each_character(text, [&](char32_t c) {
    first ? append_title(result, c) : append_lower(result, c);
    first = false;
  });
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  bool in_word = false;
  for_each_character(text, [&](char32_t c) {
    in_word ? append_lower(result, c) : append_title(result, c);
    in_word = is_cased(c);
  });
  return result;
}

std::string title_words(std::string_view text) {
  std::string result;
  bool in_word = false;
  for_each_character(text, [&](char32_t c) {
    in_word ? append_lower(result, c) : append_upper(result, c);
    in_word = !begins_word(c);
  });
  return result;
}

bool is_upper(std::string_view text) {
  return all_cased_are(text, is_uppercase);
}
bool is_lower(std::string_view text) {
  return all_cased_are(text, is_lowercase);
}

}  // namespace minimind::jinja
