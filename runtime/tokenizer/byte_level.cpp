#include "runtime/tokenizer/byte_level.h"

#include <array>
#include <cstddef>

#include "runtime/text/utf8.h"

namespace minimind {
namespace {

constexpr char32_t alphabet_end = 0x144;  // one past the largest code point of the alphabet

bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct Alphabet {
  std::array<char32_t, 256> code_point_of;
  std::array<int, alphabet_end> byte_of;  // -1 for a code point outside the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      code_point_of[byte] = stands_for_itself(byte) ? byte : next++;
      byte_of[code_point_of[byte]] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const char32_t code_point = alphabet().code_point_of[static_cast<unsigned char>(byte)];
    if (code_point < 0x80) {
      text += static_cast<char>(code_point);
    } else {
      text += static_cast<char>(0xC0u | code_point >> 6);
      text += static_cast<char>(0x80u | (code_point & 0x3Fu));
    }
  }
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Char next = first_utf8(text);
    if (next.code_point >= alphabet_end || alphabet().byte_of[next.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet().byte_of[next.code_point]);
    text.remove_prefix(next.size);
  }
  return bytes;
}

}  // namespace minimind
