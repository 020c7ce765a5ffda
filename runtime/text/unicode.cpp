#include "runtime/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

namespace minimind {
namespace {

struct ClassRange {
  char32_t first;
  char32_t last;
  CharClass char_class;
};

// Letters, numbers and marks that Unicode 15.1 and 16.0 added to 15.0, by code point. tokenizers 0.23.3 knows these
// code points and utf8proc 2.8 calls them unassigned. All of them are word characters too. A newer utf8proc agrees with
// the table.
constexpr std::array<ClassRange, 42> added_since_unicode_15 = {{
    {0x0897, 0x0897, CharClass::other},    {0x1C89, 0x1C8A, CharClass::letter},   {0xA7CB, 0xA7CD, CharClass::letter},
    {0xA7DA, 0xA7DC, CharClass::letter},   {0x105C0, 0x105F3, CharClass::letter}, {0x10D40, 0x10D49, CharClass::number},
    {0x10D4A, 0x10D65, CharClass::letter}, {0x10D69, 0x10D6D, CharClass::other},  {0x10D6F, 0x10D85, CharClass::letter},
    {0x10EC2, 0x10EC4, CharClass::letter}, {0x10EFC, 0x10EFC, CharClass::other},  {0x11380, 0x11389, CharClass::letter},
    {0x1138B, 0x1138B, CharClass::letter}, {0x1138E, 0x1138E, CharClass::letter}, {0x11390, 0x113B5, CharClass::letter},
    {0x113B7, 0x113B7, CharClass::letter}, {0x113B8, 0x113C0, CharClass::other},  {0x113C2, 0x113C2, CharClass::other},
    {0x113C5, 0x113C5, CharClass::other},  {0x113C7, 0x113CA, CharClass::other},  {0x113CC, 0x113D0, CharClass::other},
    {0x113D1, 0x113D1, CharClass::letter}, {0x113D2, 0x113D2, CharClass::other},  {0x113D3, 0x113D3, CharClass::letter},
    {0x113E1, 0x113E2, CharClass::other},  {0x116D0, 0x116E3, CharClass::number}, {0x11BC0, 0x11BE0, CharClass::letter},
    {0x11BF0, 0x11BF9, CharClass::number}, {0x11F5A, 0x11F5A, CharClass::other},  {0x13460, 0x143FA, CharClass::letter},
    {0x16100, 0x1611D, CharClass::letter}, {0x1611E, 0x1612F, CharClass::other},  {0x16130, 0x16139, CharClass::number},
    {0x16D40, 0x16D6C, CharClass::letter}, {0x16D70, 0x16D79, CharClass::number}, {0x18CFF, 0x18CFF, CharClass::letter},
    {0x1CCF0, 0x1CCF9, CharClass::number}, {0x1E5D0, 0x1E5ED, CharClass::letter}, {0x1E5EE, 0x1E5EF, CharClass::other},
    {0x1E5F0, 0x1E5F0, CharClass::letter}, {0x1E5F1, 0x1E5FA, CharClass::number}, {0x2EBF0, 0x2EE5D, CharClass::letter},
}};

const ClassRange* find_added(char32_t code_point) {
  const auto* const range = std::lower_bound(added_since_unicode_15.begin(), added_since_unicode_15.end(), code_point,
                                             [](const ClassRange& r, char32_t c) { return r.last < c; });
  return range != added_since_unicode_15.end() && range->first <= code_point ? range : nullptr;
}

// Letters, numbers and marks that Unicode 17.0 added, which tokenizers 0.23.3 does not know and utf8proc 2.11 does.
constexpr std::array<std::pair<char32_t, char32_t>, 27> added_since_unicode_16 = {
    {{0x088F, 0x088F},   {0x0C5C, 0x0C5C},   {0x0CDC, 0x0CDC},   {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},
     {0xA7CE, 0xA7CF},   {0xA7D2, 0xA7D2},   {0xA7D4, 0xA7D4},   {0xA7F1, 0xA7F1},   {0x10940, 0x10959},
     {0x10EC5, 0x10EC7}, {0x10EFA, 0x10EFB}, {0x11B60, 0x11B67}, {0x11DB0, 0x11DDB}, {0x11DE0, 0x11DE9},
     {0x16EA0, 0x16EB8}, {0x16EBB, 0x16ED3}, {0x16FF2, 0x16FF6}, {0x187F8, 0x187FF}, {0x18D09, 0x18D1E},
     {0x18D80, 0x18DF2}, {0x1E6C0, 0x1E6DE}, {0x1E6E0, 0x1E6F5}, {0x1E6FE, 0x1E6FF}, {0x2B73A, 0x2B73F},
     {0x2CEA2, 0x2CEAD}, {0x323B0, 0x33479}}};

bool added_later(char32_t code_point) {
  const auto* const range = std::lower_bound(added_since_unicode_16.begin(), added_since_unicode_16.end(), code_point,
                                             [](const auto& r, char32_t c) { return r.second < c; });
  return range != added_since_unicode_16.end() && range->first <= code_point;
}

utf8proc_category_t category_of(char32_t code_point) {
  const auto category = [](char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); };
  static const bool knows_unicode_17 = category(added_since_unicode_16.front().first) != UTF8PROC_CATEGORY_CN;
  if (knows_unicode_17 && added_later(code_point)) return UTF8PROC_CATEGORY_CN;
  return category(code_point);
}

CharClass class_from_tables(char32_t code_point) {
  if (is_white_space(code_point)) return CharClass::space;
  switch (category_of(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    case UTF8PROC_CATEGORY_CN: {
      const ClassRange* const added = find_added(code_point);
      return added != nullptr ? added->char_class : CharClass::other;
    }
    default:
      return CharClass::other;
  }
}

std::array<CharClass, 128> ascii_classes() {
  std::array<CharClass, 128> classes{};
  for (char32_t c = 0; c < classes.size(); ++c) classes[c] = class_from_tables(c);
  return classes;
}

// Symbols (So) that are alphabetic by the property Other_Alphabetic: letters in circles and squares.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

CharClass class_of(char32_t code_point) {
  static const std::array<CharClass, 128> ascii = ascii_classes();
  return code_point < ascii.size() ? ascii[code_point] : class_from_tables(code_point);
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(char32_t code_point) {
  switch (category_of(code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_NO:
      return false;
    case UTF8PROC_CATEGORY_CN:
      return find_added(code_point) != nullptr;
    case UTF8PROC_CATEGORY_SO:
      return is_enclosed_letter(code_point);
    default: {
      const CharClass char_class = class_of(code_point);
      return char_class == CharClass::letter || char_class == CharClass::number || code_point == 0x200C ||
             code_point == 0x200D;
    }
  }
}

}  // namespace minimind
