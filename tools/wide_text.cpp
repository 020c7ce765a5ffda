#include "tools/wide_text.h"

#include "runtime/jinja_text.h"
#include "runtime/utf8.h"

namespace minimind {

std::wstring to_wide(std::string_view text) {
  std::wstring wide;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = first_utf8(text.substr(at));
    wide += static_cast<wchar_t>(next.code_point);
    at += next.size;
  }
  return wide;
}

std::string from_wide(std::wstring_view text) {
  std::string narrow;
  for (const wchar_t c : text) {
    const auto code_point = static_cast<char32_t>(c);
    const bool is_scalar = code_point < 0xD800 || (code_point > 0xDFFF && code_point <= 0x10FFFF);
    jinja::append_utf8(narrow, is_scalar ? code_point : U'\uFFFD');
  }
  return narrow;
}

}  // namespace minimind
