#include "weights/io/text_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "weights/io/error.h"
#include "weights/io/mistaken_file.h"

namespace minimind {

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string read_text_file(const std::string& path, std::size_t largest) {
  std::ifstream file(path, std::ios::binary);
  if (!file || is_folder(path))
    throw Error(
        fmt::format("{}: cannot be read: {}{}", path, std::strerror(file ? EISDIR : errno), advice_on_home(path)));
  std::string text;
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest) throw Error(fmt::format("{}: is too long, expected at most {} bytes", path, largest));
  }
  return text;
}

}  // namespace minimind
