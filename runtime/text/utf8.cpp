#include "runtime/text/utf8.h"

#include <utf8proc.h>

#include <array>
#include <utility>

namespace minimind {
namespace {

constexpr char32_t replacement_character = 0xFFFD;
constexpr std::string_view replacement_bytes = "\xEF\xBF\xBD";

// The length and the range of the second byte that follow from a first byte. The range excludes overlong forms,
// surrogates and code points over U+10FFFF; later bytes are always 80..BF.
struct Lead {
  std::size_t size;  // of the whole character; 0 if no character starts with this byte
  unsigned char second_min;
  unsigned char second_max;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u;
}

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

Utf8Char first_utf8(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x80) return {Utf8State::complete, first, 1};
  const Lead lead = lead_of(first);
  if (lead.size == 0) return {Utf8State::malformed, replacement_character, 1};
  char32_t code_point = first & (0x7Fu >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (i == bytes.size()) return {Utf8State::truncated, replacement_character, i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xBF;
    if (byte < low || byte > high) return {Utf8State::malformed, replacement_character, i};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {Utf8State::complete, code_point, lead.size};
}

Utf8Char last_utf8(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
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
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
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
