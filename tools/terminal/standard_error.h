#pragma once

#include <string>

namespace minimind {

// Writes a line, which ends with a line feed, to stderr, and waits until stderr takes it. If stderr is closed or its
// disk is full, the line is lost. Any thread may call this.
void write_error_line(std::string line);

// After this call a line that would have to wait is lost instead, as is what is over 4 KB of a line. The next line that
// is not lost says how many were. For a server: whoever does not read its log must not stop it.
void never_wait_for_standard_error();

}  // namespace minimind
