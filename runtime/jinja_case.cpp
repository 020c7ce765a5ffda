#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "runtime/jinja_text.h"
#include "runtime/utf8.h"

// The case mappings of jinja_text.h: Unicode's full ones (SpecialCasing.txt), derived from utf8proc's simple mappings
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

bool is_cased(char32_t c) {
  return is_of(c, UTF8PROC_CATEGORY_LU) || is_of(c, UTF8PROC_CATEGORY_LL) || is_of(c, UTF8PROC_CATEGORY_LT);
}

template <class Use>
void for_each_character(std::string_view text, Use use) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    use(character.code_point);
    at += character.size;
  }
}

// Whether all cased characters, and one at least, are of `wanted`.
bool all_cased_are(std::string_view text, utf8proc_category_t wanted) {
  bool some = false;
  bool others = false;
  for_each_character(text, [&](char32_t c) { (is_of(c, wanted) ? some : others) |= is_cased(c); });
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
  return all_cased_are(text, UTF8PROC_CATEGORY_LU);
}
bool is_lower(std::string_view text) {
  return all_cased_are(text, UTF8PROC_CATEGORY_LL);
}

}  // namespace minimind::jinja
