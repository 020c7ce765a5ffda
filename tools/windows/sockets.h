#pragma once

namespace minimind::windows {

bool is_socket(int descriptor);
int close_socket(int descriptor);

// As poll() without waiting.
short poll_socket(int descriptor, short events);

}  // namespace minimind::windows
