#include "weights/base/text.h"

#include <fmt/core.h>
#include <utf8proc.h>

namespace minimind {
namespace {

constexpr char32_t replacement_character = 0xFFFD;
constexpr std::size_t longest_quote = 200;
constexpr std::size_t longest_tensor_name = 1000;

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

// Returns the number of bytes of the visible character at the start of `text`; 0 if there is none.
std::size_t visible_character_size(std::string_view text) {
  const Utf8Char first = first_utf8(text);
  return first.state == Utf8State::complete && is_visible(first.code_point) ? first.size : 0;
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

bool is_visible(char32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

std::string quote(std::string_view name) {
  std::string text = "'";
  std::size_t position = 0;
  while (position < name.size() && position < longest_quote) {
    const std::size_t size = visible_character_size(name.substr(position));
    if (size == 0) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(name[position]));
      position += 1;
    } else {
      text += name.substr(position, size);
      position += size;
    }
  }
  text += position < name.size() ? "...'" : "'";
  return text;
}

bool is_tensor_name(std::string_view name) {
  if (name.empty() || name.size() > longest_tensor_name) return false;
  for (std::size_t position = 0; position < name.size();) {
    const std::size_t size = visible_character_size(name.substr(position));
    if (size == 0) return false;
    position += size;
  }
  return true;
}

}  // namespace minimind
