#include "tools/terminal/line_text.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "tools/terminal/terminal_text.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

enum class WordClass { none, narrow, wide };

// By the character's first code point; the others belong to it.
WordClass word_class(char32_t c) {
  if (!is_word_character(c)) return WordClass::none;
  return columns_of(c) == 2 ? WordClass::wide : WordClass::narrow;
}

// The start of each character of `text`, and its end.
std::vector<std::size_t> boundaries(std::u32string_view text) {
  std::vector<std::size_t> found{0};
  for (std::size_t at = 0; at < text.size();) found.push_back(at = character_end(text.substr(at), 0) + at);
  return found;
}

// Han, kana, Hangul and fullwidth forms: two columns on every terminal.
bool is_plainly_wide(char32_t c) {
  const bool in_block = (c >= 0x3001 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                        (c >= 0xFF01 && c <= 0xFF60);
  return in_block && columns_of(c) == 2;
}

}  // namespace

std::string to_utf8(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) append_utf8(bytes, c);
  return bytes;
}

std::size_t character_end(std::u32string_view text, std::size_t position) {
  utf8proc_int32_t state = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    const bool is_boundary = utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(text[at - 1]),
                                                              static_cast<utf8proc_int32_t>(text[at]), &state);
    if (is_boundary && at > position) return at;
  }
  return text.size();
}

std::size_t character_begin(std::u32string_view text, std::size_t position) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = character_end(text.substr(begin), 0) + begin) < position;) begin = end;
  return begin;
}

std::size_t word_end(std::u32string_view text, std::size_t position) {
  WordClass word = WordClass::none;
  for (const std::size_t at : boundaries(text)) {
    if (at < position || at == text.size()) continue;
    const WordClass here = word_class(text[at]);
    if (word != WordClass::none && here != word) return at;
    word = here;
  }
  return text.size();
}

std::size_t word_begin(std::u32string_view text, std::size_t position) {
  std::size_t begin = 0;
  WordClass before = WordClass::none;
  for (const std::size_t at : boundaries(text)) {
    if (at >= position) break;
    const WordClass here = word_class(text[at]);
    if (here != WordClass::none && here != before) begin = at;
    before = here;
  }
  return begin;
}

ShownCharacter show_character(std::u32string_view character) {
  ShownCharacter shown{"", 0, {}, character.size() == 1 && (character[0] < 0x80 || is_plainly_wide(character[0]))};
  const auto add = [&](std::size_t width) {
    shown.columns += width;
    if (width > 0) shown.widths.push_back(width);
  };
  for (const char32_t c : character) {
    const std::string bytes = to_utf8({&c, 1});
    std::string safe = terminal_text(bytes);
    const bool invisible = shown.columns == 0 && columns_of(c) == 0 && safe == bytes;
    if (invisible) safe = fmt::format("<U+{:04X}>", static_cast<unsigned>(c));
    if (safe == bytes) {
      add(columns_of(c));
    } else {
      for (std::size_t i = 0; i < safe.size(); ++i) add(1);
    }
    shown.bytes += safe;
  }
  // Some terminals use a second column for a character that this selector turns into an emoji.
  constexpr char32_t emoji_selector = 0xFE0F;
  if (shown.columns == 1 && character.back() == emoji_selector) add(1);
  return shown;
}

}  // namespace minimind
