#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/batch/request_lines.h"
#include "weights/io/file_lock.h"

namespace minimind {

// A file of lines that grows at its end.
class LineFile {
 public:
  // Opens the file if it exists.
  explicit LineFile(std::string path);
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  ~LineFile();

  bool exists() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }

  // Creates the file if it does not exist.
  void create();

  // Keeps the first `size` bytes.
  void truncate(std::uint64_t size);

  // Creates the file if it does not exist. If the disk is full or fails, nothing of the line is left.
  void append(std::string_view line);

  void sync();

 private:
  void open(int flags);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// The two files that a batch writes, results and errors, each in the order of the input, by whole lines. The file of
// errors appears with the first error. A batch that was ended in any way, kill -9 and power loss included, continues
// after the lines that are whole.
class ResultFiles {
 public:
  // Takes away lines that are not whole, and those after the first request that has none, which becomes the next of
  // `requests`. Throws Error if a file cannot be written, is in use, or has lines of other requests.
  ResultFiles(const std::string& results_path, const std::string& errors_path, RequestLines& requests);

  // How many requests have their line.
  std::size_t done() const { return done_; }
  std::size_t errors() const { return errors_; }

  // Writes the line of the next request, which ends with a line feed. Throws Error if the disk is full or fails; then
  // nothing of the line is left.
  void append(std::string_view line, bool is_error);

  // Flushes what was written to the disk.
  void sync();

 private:
  void keep_lines_of(RequestLines& requests);

  FileLock results_lock_, errors_lock_;
  LineFile results_, errors_file_;
  std::size_t done_ = 0;
  std::size_t errors_ = 0;
};

}  // namespace minimind
