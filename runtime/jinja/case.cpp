#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"

// The case mappings of text.h: Unicode's full ones (SpecialCasing.txt), derived from utf8proc's simple mappings
// and its full case folding. The rules were found to give what Python 3.11 gives for every code point.

namespace minimind::jinja {
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
