#include "tools/terminal/terminal_text.h"

#include <fmt/core.h>

#include <algorithm>

namespace minimind {
namespace {

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

// Directional overrides and isolates, line and paragraph separators, deprecated format characters and invisible tags.
// Joiners and variation selectors are not included: emoji and many scripts use them.
bool misleads(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

std::string written_out(char32_t c) {
  if (c < 0x80) return {'^', static_cast<char>(c ^ 0x40)};
  return fmt::format("<U+{:04X}>", static_cast<unsigned>(c));
}

}  // namespace

std::string TerminalText::push(std::string_view text) {
  const std::string whole = utf8_.push(text);
  std::string safe;
  for (std::size_t at = 0; at < whole.size();) {
    const Utf8Char c = first_utf8(std::string_view(whole).substr(at));
    if (held_return_ && c.code_point != '\n') safe += written_out('\r');
    held_return_ = c.code_point == '\r';
    if (c.code_point == '\n' || c.code_point == '\t' || !(is_control(c.code_point) || misleads(c.code_point))) {
      safe.append(whole, at, c.size);
    } else if (!held_return_) {
      safe += written_out(c.code_point);
    }
    at += c.size;
  }
  return safe;
}

std::string TerminalText::finish() {
  std::string safe = push(utf8_.finish());
  if (held_return_) safe += written_out('\r');
  held_return_ = false;
  return safe;
}

std::string terminal_text(std::string_view text) {
  TerminalText stream;
  std::string safe = stream.push(text);
  return safe += stream.finish();
}

std::string terminal_line(std::string_view text) {
  std::string safe = terminal_text(text);
  std::replace(safe.begin(), safe.end(), '\n', ' ');
  return safe;
}

}  // namespace minimind
