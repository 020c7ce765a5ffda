#include "runtime/grammar/gbnf_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "runtime/grammar/code_points.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind {

GrammarReader::GrammarReader(std::string_view text, const std::string& source) : text_(text), source_(source) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = first_utf8(text.substr(at));
    if (next.state != Utf8State::complete) fail_at(at, "this is not UTF-8");
    at += next.size;
  }
}

void GrammarReader::fail_at(std::size_t position, const std::string& reason) const {
  const std::string_view before = text_.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view in_line = before.substr(before.find_last_of('\n') + 1);  // npos + 1 is 0
  const auto column = 1 + std::count_if(in_line.begin(), in_line.end(),
                                        [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; });
  throw LocatedError(fmt::format("{}:{}:{}: {}", source_, line, column, reason));
}

bool GrammarReader::take_if(std::string_view wanted) {
  if (!starts_with(wanted)) return false;
  at_ += wanted.size();
  return true;
}

void GrammarReader::skip_space(bool newlines) {
  for (; !at_end(); ++at_) {
    const char c = peek();
    if (c == '#') at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    if (at_end()) return;
    const bool ends_line = peek() == '\n' || peek() == '\r';
    if (c == '#' ? !(ends_line && newlines) : !(c == ' ' || c == '\t' || (ends_line && newlines))) return;
  }
}

char32_t GrammarReader::take_character() {
  if (at_end()) fail("the grammar ends here; wanted a character");
  if (peek() == '\\') return take_escape();
  const Utf8Char next = first_utf8(text_.substr(at_));
  at_ += next.size;
  return next.code_point;
}

char32_t GrammarReader::take_escape() {
  const std::size_t begin = at_;
  take();
  if (at_end()) fail_at(begin, "the grammar ends within this escape");
  const char kind = take();
  switch (kind) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
      return static_cast<char32_t>(kind);
    case 'x':
    case 'u':
    case 'U':
      break;
    default:
      fail_at(begin, "this escape is unknown; wanted \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH or \\UHHHHHHHH");
  }
  const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  const std::string_view hex = text_.substr(at_, digits);
  std::uint32_t code_point = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code_point, 16);
  if (hex.size() != digits || error != std::errc() || end != hex.data() + digits) {
    fail_at(begin, fmt::format("this escape wants {} hexadecimal digits", digits));
  }
  if (code_point > last_code_point || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    fail_at(begin, "this escape names no character");
  }
  at_ += digits;
  return code_point;
}

}  // namespace minimind
