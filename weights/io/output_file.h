#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace minimind {

// The file that OutputFile(path) writes: where a link to a file leads, or the path itself.
std::string output_target(const std::string& path);

// A file that appears under its name only when it is whole: it is written under a temporary name in the same folder
// (".NAME.PID-N.part") and renamed by commit(). Without commit() nothing is left over, and what had the name before
// is untouched; what a process that was killed has left goes when the file is written again. If the name is a link
// to a file, that file is replaced and the link stays. Its permissions are those that the umask gives any new file.
class OutputFile {
 public:
  // Called about every megabyte with the number of bytes written so far; what it throws ends the writing.
  using Watch = std::function<void(std::uint64_t)>;

  // Throws Error, naming the path and the reason, if the folder is not there or cannot be written, and when the path
  // is something other than a file, such as a folder or a pipe.
  explicit OutputFile(std::string path, Watch watch = {});
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Both throw Error when the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  // Overwrites bytes that were written before.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);

  // The number of bytes given to write().
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Flushes everything to the disk. Nothing can be written afterwards; what may fail, or be stopped, has happened.
  void finish();

  // Gives the file its name, replacing what had it; finishes it before, if that was not done.
  void commit();

 private:
  bool open_part();
  void flush();
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string final_path_;  // where links lead
  std::string temporary_path_;
  Watch watch_;
  int descriptor_ = -1;  // locked, see part_files.h
  bool finished_ = false;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;  // the last bytes, not yet in the file
};

}  // namespace minimind
