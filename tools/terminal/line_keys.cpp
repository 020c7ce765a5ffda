#include "tools/terminal/line_keys.h"

#include <array>
#include <utility>

#include "runtime/text/utf8.h"
#include "tools/terminal/line_text.h"

namespace minimind {
namespace {

constexpr std::size_t longest_paste = std::size_t{2} << 20, longest_sequence = 64;  // bytes

// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "Bracketed Paste Mode".
constexpr std::string_view paste_begin = "\x1b[200~", paste_end = "\x1b[201~";

using Binding = std::pair<std::string_view, LineKey>;

LineKey key_of_control(char c) {
  switch (c) {
    case '\r':
    case '\n':
      return LineKey::enter;
    case '\t':
      return LineKey::tab;
    case '\b':
    case '\x7f':
      return LineKey::backspace;
    default:
      break;
  }
  switch (c | 0x40) {
    case 'A':
      return LineKey::home;
    case 'B':
      return LineKey::left;
    case 'D':
      return LineKey::end_of_input;
    case 'E':
      return LineKey::end;
    case 'F':
      return LineKey::right;
    case 'G':
      return LineKey::abort;
    case 'K':
      return LineKey::kill_to_end;
    case 'L':
      return LineKey::clear_screen;
    case 'N':
      return LineKey::down;
    case 'P':
      return LineKey::up;
    case 'R':
      return LineKey::search;
    case 'T':
      return LineKey::transpose;
    case 'U':
      return LineKey::kill_to_begin;
    case 'W':
      return LineKey::kill_word_left;
    case 'Y':
      return LineKey::yank;
    default:
      return LineKey::unknown;
  }
}

// Sequences after an escape in xterm, the Linux console, tmux, rxvt, and terminals that report Enter with a modifier.
LineKey key_of_sequence(std::string_view sequence) {
  static constexpr std::array<Binding, 44> bindings = {{
      {"[A", LineKey::up},
      {"OA", LineKey::up},
      {"[B", LineKey::down},
      {"OB", LineKey::down},
      {"[C", LineKey::right},
      {"OC", LineKey::right},
      {"[D", LineKey::left},
      {"OD", LineKey::left},
      {"[H", LineKey::home},
      {"OH", LineKey::home},
      {"[1~", LineKey::home},
      {"[7~", LineKey::home},
      {"[F", LineKey::end},
      {"OF", LineKey::end},
      {"[4~", LineKey::end},
      {"[8~", LineKey::end},
      {"[3~", LineKey::delete_next},
      {"[1;5C", LineKey::word_right},
      {"[1;3C", LineKey::word_right},
      {"[1;5D", LineKey::word_left},
      {"[1;3D", LineKey::word_left},
      {"Oc", LineKey::word_right},
      {"Od", LineKey::word_left},
      {"[5C", LineKey::word_right},
      {"[5D", LineKey::word_left},
      {"[3;5~", LineKey::kill_word_right},
      {"[3;3~", LineKey::kill_word_right},
      {"b", LineKey::word_left},
      {"B", LineKey::word_left},
      {"f", LineKey::word_right},
      {"F", LineKey::word_right},
      {"d", LineKey::kill_word_right},
      {"D", LineKey::kill_word_right},
      {"\x7f", LineKey::kill_word_left},
      {"\b", LineKey::kill_word_left},
      {"\r", LineKey::newline},
      {"\n", LineKey::newline},
      {"[13;2u", LineKey::newline},
      {"[13;3u", LineKey::newline},
      {"[13;5u", LineKey::newline},
      {"[27;2;13~", LineKey::newline},
      {"[27;3;13~", LineKey::newline},
      {"[27;5;13~", LineKey::newline},
      {"\x07", LineKey::abort},
  }};
  for (const auto& [bytes, key] : bindings) {
    if (bytes == sequence) return key;
  }
  return LineKey::unknown;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
}

// Returns the size of the sequence at the start of `bytes`, its escape included; std::nullopt if it continues. A
// control character ends an incomplete sequence.
std::optional<std::size_t> sequence_size(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  if (bytes[1] != '[' && bytes[1] != 'O') {
    const Utf8Char next = first_utf8(bytes.substr(1));
    return next.state == Utf8State::truncated ? std::nullopt : std::optional(1 + next.size);
  }
  const std::size_t first = bytes.substr(0, 3) == "\x1b[[" ? 3 : 2;  // a function key of the Linux console
  for (std::size_t at = first; at < bytes.size(); ++at) {
    if (is_control(bytes[at]) || static_cast<unsigned char>(bytes[at]) >= 0x80) return at;
    if (bytes[at] >= 0x40) return at + 1;
  }
  return std::nullopt;
}

}  // namespace

PressedKey LineKeys::take(LineKey key, std::size_t size) {
  bytes_.erase(0, size);
  return {key, {}};
}

PressedKey LineKeys::take_escape() {
  return take(LineKey::escape, 1);
}

std::optional<PressedKey> LineKeys::next() {
  if (bytes_.empty()) return std::nullopt;
  if (bytes_.front() == '\x1b') return next_sequence();
  if (is_control(bytes_.front())) return take(key_of_control(bytes_.front()), 1);
  return next_text();
}

std::optional<PressedKey> LineKeys::next_text() {
  const Utf8Char next = first_utf8(bytes_);
  if (next.state == Utf8State::truncated) return std::nullopt;
  bytes_.erase(0, next.size);
  return PressedKey{LineKey::text, std::u32string(1, next.code_point)};
}

std::optional<PressedKey> LineKeys::next_sequence() {
  while (bytes_.starts_with("\x1b\x1b")) bytes_.erase(0, 1);
  if (bytes_.starts_with(paste_begin)) return next_paste();
  const auto size = sequence_size(bytes_);
  if (!size && bytes_.size() > longest_sequence) return take(LineKey::unknown, bytes_.size());
  if (!size) return std::nullopt;
  return take(key_of_sequence(std::string_view(bytes_).substr(1, *size - 1)), *size);
}

// Drops newlines at the end, so that a pasted line stays one line.
std::optional<PressedKey> LineKeys::next_paste() {
  const std::size_t end = bytes_.find(paste_end, searched_);
  if (end == std::string::npos) {
    const std::size_t maybe_end = bytes_.size() - (paste_end.size() - 1);
    if (maybe_end > longest_paste) bytes_.erase(longest_paste, maybe_end - longest_paste);
    searched_ = bytes_.size() - (paste_end.size() - 1);
    return std::nullopt;
  }
  std::u32string text;
  for (const char32_t c :
       code_points_of(std::string_view(bytes_).substr(paste_begin.size(), end - paste_begin.size()))) {
    if (c == '\n' && text.ends_with(U'\r')) text.pop_back();
    if (text.ends_with(U'\r')) text.back() = '\n';
    if (c != 0) text += c;
  }
  while (text.ends_with(U'\n') || text.ends_with(U'\r')) text.pop_back();
  bytes_.erase(0, end + paste_end.size());
  searched_ = 0;
  return PressedKey{LineKey::text, std::move(text)};
}

}  // namespace minimind
