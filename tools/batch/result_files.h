#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/io/file_lock.h"

namespace minimind {

// The two files that a batch writes, results and errors, each in the order of the input, by whole lines. A batch that
// was ended in any way, kill -9 and power loss included, continues after the lines that are whole.
class ResultFiles {
 public:
  // `custom_ids` of all requests, in order. Takes away lines that are not whole, and those after the first request that
  // has none. Throws Error if a file cannot be opened, is in use, or has lines of other requests.
  ResultFiles(std::string results_path, std::string errors_path, const std::vector<std::string>& custom_ids);
  ResultFiles(const ResultFiles&) = delete;
  ResultFiles& operator=(const ResultFiles&) = delete;
  ~ResultFiles();

  // How many requests have their line.
  std::size_t done() const { return done_; }
  std::size_t errors() const { return errors_; }

  // Writes the line of the next request, which ends with a line feed. Throws Error if the disk is full or fails; then
  // nothing of the line is left.
  void append(std::string_view line, bool is_error);

  // Flushes what was written to the disk.
  void sync();

 private:
  struct File {
    std::string path;
    int descriptor = -1;
    std::uint64_t size = 0;
  };
  static File open(std::string path);
  void keep_lines_of(const std::vector<std::string>& custom_ids);

  FileLock lock_;
  File results_, errors_file_;
  std::size_t done_ = 0;
  std::size_t errors_ = 0;
};

}  // namespace minimind
