#pragma once

#include <string>

namespace minimind {

// Whether there is a folder of that name.
bool is_folder(const std::string& path);

// The whole of a small text file or pipe. Throws Error if it cannot be read or is over 64 MiB.
std::string read_text_file(const std::string& path);

}  // namespace minimind
