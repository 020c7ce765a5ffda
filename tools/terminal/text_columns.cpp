#include "tools/terminal/text_columns.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "runtime/text/code_points.h"
#include "runtime/text/utf8.h"

namespace minimind {
namespace {

bool starts_no_line(char32_t c) {
  return std::u32string_view(U"，。；：、？！）》」…").find(c) != std::u32string_view::npos;
}

bool ends_no_line(char32_t c) {
  return std::u32string_view(U"（《「").find(c) != std::u32string_view::npos;
}

// Splits text where a line may end: after words with their trailing spaces, and after Chinese characters.
std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  char32_t before = U' ';
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = first_utf8(text.substr(at));
    const char32_t c = next.code_point;
    const bool touches_wide = columns_of(before) == 2 || columns_of(c) == 2;
    const bool after_space = before == U' ' && c != U' ';
    if (at > begin && c != U' ' && !starts_no_line(c) && !ends_no_line(before) && (after_space || touches_wide)) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    before = c;
    at += next.size;
  }
  if (begin < text.size()) pieces.push_back(text.substr(begin));
  return pieces;
}

std::string_view without_trailing_spaces(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::size_t columns_of(char32_t character) {
  return static_cast<std::size_t>(std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(character)), 0));
}

std::size_t columns_in(std::string_view text) {
  std::size_t columns = 0;
  for (const char32_t c : code_points_of(text)) columns += columns_of(c);
  return columns;
}

std::string padded(std::string_view text, std::size_t columns) {
  const std::size_t taken = columns_in(text);
  return std::string(text) + std::string(columns > taken ? columns - taken : 0, ' ');
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string lines, line(indent, ' ');
  bool line_is_empty = true;
  for (const std::string_view piece : pieces_of(text)) {
    if (!line_is_empty && columns_in(line) + columns_in(without_trailing_spaces(piece)) > columns) {
      lines += std::string(without_trailing_spaces(line)) + '\n';
      line.assign(indent, ' ');
    }
    line += piece;
    line_is_empty = false;
  }
  return (lines + std::string(without_trailing_spaces(line))).substr(indent);
}

}  // namespace minimind
