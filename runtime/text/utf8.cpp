#include "runtime/text/utf8.h"

#include <utility>

namespace minimind {
namespace {

constexpr std::string_view replacement_bytes = "\xEF\xBF\xBD";

// Appends the text of `bytes` to `text`. Returns the number of bytes at the end that are a truncated character.
std::size_t append_lossy(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const Utf8Char next = first_utf8(bytes);
    if (next.state == Utf8State::truncated) return bytes.size();
    text += next.state == Utf8State::complete ? bytes.substr(0, next.size) : replacement_bytes;
    bytes.remove_prefix(next.size);
  }
  return 0;
}

}  // namespace

Utf8Char last_utf8(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && !starts_character(text[begin])) --begin;
  return first_utf8(text.substr(begin));
}

bool is_utf8(std::string_view bytes) {
  return !first_not_utf8(bytes);
}

std::optional<std::size_t> first_not_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Char c = first_utf8(bytes.substr(at));
    if (c.state != Utf8State::complete) return at;
    at += c.size;
  }
  return std::nullopt;
}

void append_utf8(std::string& text, char32_t character) {
  const auto byte = [&](char32_t value) { text += static_cast<char>(value); };
  const auto continuation = [&](int shift) { byte(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) return byte(character);
  if (character < 0x800) {
    byte(0xC0 | character >> 6);
  } else if (character < 0x10000) {
    byte(0xE0 | character >> 12);
    continuation(6);
  } else {
    byte(0xF0 | character >> 18);
    continuation(12);
    continuation(6);
  }
  continuation(0);
}

std::string to_utf8_lossy(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  if (append_lossy(bytes, text) > 0) text += replacement_bytes;
  return text;
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string text;
  const std::size_t held_back = append_lossy(pending_, text);
  pending_.erase(0, pending_.size() - held_back);
  return text;
}

std::string Utf8Stream::finish() {
  return std::exchange(pending_, {}).empty() ? std::string() : std::string(replacement_bytes);
}

}  // namespace minimind
