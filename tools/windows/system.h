#pragma once

#include <string>
#include <string_view>

namespace minimind::windows {

// UTF-16 and UTF-8; what is neither becomes U+FFFD.
std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);

// Returns a path of the system with slashes, which the system takes, too.
std::string narrow_path(std::wstring path);

// The handle of a file, a pipe or a console; INVALID_HANDLE_VALUE if the descriptor is none.
void* handle_of(int descriptor);

// Sets errno from an error of the system, GetLastError() if none is given. Returns -1.
int fail();
int fail(unsigned long error);

}  // namespace minimind::windows
