#pragma once

#include <cstddef>
#include <string>

namespace minimind {

// Returns true if a folder of that name exists.
bool is_folder(const std::string& path);

// Returns the whole of a text file or pipe. Throws Error if it cannot be read or is over `largest` bytes.
std::string read_text_file(const std::string& path, std::size_t largest = std::size_t{64} << 20);

}  // namespace minimind
