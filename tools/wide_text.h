#pragma once

#include <string>
#include <string_view>

namespace minimind {

// UTF-8 as the C library's wide characters, which are code points, and back. What is not well formed becomes U+FFFD.
std::wstring to_wide(std::string_view text);
std::string from_wide(std::wstring_view text);

}  // namespace minimind
