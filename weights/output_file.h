#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace minimind {

// A file that appears under its name only when it is whole: it is written under a temporary name in the same folder and
// renamed by commit(). Without commit() nothing is left behind.
class OutputFile {
 public:
  // Called after each write with the number of bytes written so far; what it throws ends the writing.
  using Watch = std::function<void(std::uint64_t)>;

  // Throws Error, naming the path and the reason, when the folder is not there or cannot be written.
  explicit OutputFile(std::string path, Watch watch = {});
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Both throw Error when the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  // Overwrites bytes that were written before.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Flushes to the disk and gives the file its name, replacing what had it.
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  Watch watch_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace minimind
