#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace minimind {

// A folder for inputs that are read by name, next to other files. It is removed when the program ends.
class ScratchFolder {
 public:
  ScratchFolder() {
    const bool has_memory = std::filesystem::is_directory("/dev/shm");
    path_ = has_memory ? "/dev/shm/minimind-fuzz-XXXXXX"
                       : (std::filesystem::temp_directory_path() / "minimind-fuzz-XXXXXX").string();
    if (!::mkdtemp(path_.data())) std::abort();
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(content.data(), std::ssize(content));
    return path;
  }

 private:
  std::string path_;
};

}  // namespace minimind
