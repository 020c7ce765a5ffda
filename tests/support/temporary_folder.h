#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/temporary_file.h"

namespace minimind {

// An empty folder, removed with its content at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(testing::TempDir() + "minimind-XXXXXX") {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no temporary folder: " + path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  // Writes a file in it, creating the folders between, and returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc).write(content.data(), std::ssize(content));
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace minimind
