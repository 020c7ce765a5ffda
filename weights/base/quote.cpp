#include "weights/base/quote.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <cstddef>

#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t longest_quote = 200;
constexpr std::size_t longest_tensor_name = 1000;

// Returns the number of bytes of the visible character at the start of `text`; 0 if there is none.
std::size_t visible_character_size(std::string_view text) {
  const Utf8Char first = first_utf8(text);
  if (first.state != Utf8State::complete) return 0;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(first.code_point))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return 0;
    default:
      return first.size;
  }
}

}  // namespace

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
