#pragma once

#include <cstddef>

namespace minimind::windows {

// `handle`: of the system.
bool is_console(void* handle);

// Reads UTF-8 from the keyboard: what is there if each key is to be delivered, else a line. Returns 0 at the end of the
// input.
int read_console(void* handle, char* bytes, std::size_t size);

// Whether read_console() returns at once; false for a line.
bool console_has_input(void* handle);

}  // namespace minimind::windows
