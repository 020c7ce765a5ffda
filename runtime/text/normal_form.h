#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// Unicode's normal forms, under the names that tokenizers have for them.
enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
inline constexpr std::array<std::string_view, 4> normal_form_names = {"NFC", "NFD", "NFKC", "NFKD"};

constexpr std::string_view name_of(NormalForm form) {
  return normal_form_names[static_cast<std::size_t>(form)];
}
std::optional<NormalForm> normal_form_of(std::string_view name);

// Brings valid UTF-8 into a form. Throws Error for over 128 combining marks in a row, and in a program that has no
// tables for it, such as the core.
std::string normalized(std::string_view text, NormalForm form);

}  // namespace minimind
