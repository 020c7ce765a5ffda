#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr char32_t replacement_character = 0xFFFD;

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

}  // namespace minimind
