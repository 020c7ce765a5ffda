#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/io/input_file.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A file with the given bytes, removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content = {}) : path_(testing::TempDir() + "minimind-XXXXXX") {
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error("no temporary file: " + path_);
    ::close(descriptor);
    write(content);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }

  const std::string& path() const { return path_; }
  void write(std::string_view content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(content.data(), std::ssize(content));
  }
  std::shared_ptr<const InputFile> open() const { return InputFile::open(path_); }

 private:
  std::string path_;
};

inline std::string read_whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string as_string(const InputFile& file) {
  return file.read_text(file.size());
}

inline std::string as_string(const StoredBytes& bytes) {
  const std::vector<std::byte> all = bytes.read_all();
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

// Returns the message of the Error that `action` throws; empty if it throws none.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace minimind
