#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weights/io/part_files.h"

namespace minimind {

// Returns the file that OutputFile(path) writes: the target if the path is a link to a file, else the path itself.
std::string output_target(const std::string& path);

// A file that appears under its name only when it is complete. It is written under a temporary name in the same folder
// (".NAME.PID-N.part") and renamed by commit(). Without commit(), the temporary file is removed and an existing file of
// that name is unchanged. Temporary files of killed processes are removed when the file is written again. If the name
// is a link to a file, that file is replaced and the link stays. Its permissions are those that the umask gives any new
// file, or of its owner alone.
class OutputFile {
 public:
  // Called about every megabyte with the number of bytes written so far. An exception from it ends the writing.
  using Watch = std::function<void(std::uint64_t)>;
  enum class Readers { as_umask, owner };

  // Throws Error, naming the path and the reason, if the folder does not exist or is read-only, and if the path exists
  // and is not a file.
  explicit OutputFile(std::string path, Watch watch = {}, Readers readers = Readers::as_umask);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Both throw Error if the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  // Overwrites bytes that were already written.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);

  // Returns the number of bytes given to write().
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }

  // Flushes everything to the disk. Nothing can be written afterwards. Every step that can fail or be interrupted is
  // then done.
  void finish();

  // Gives the file its name, replacing an existing file. Calls finish() first if the caller has not.
  void commit();

 private:
  bool open_part();
  void flush();
  void written_to(std::uint64_t end);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string final_path_;  // with links resolved
  std::string temporary_path_;
  std::optional<Unfinished> unfinished_;  // temporary_path_
  Watch watch_;
  const Readers readers_;
  int descriptor_ = -1;  // locked, see part_files.h
  bool finished_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t sent_ = 0;         // bytes that the disk has begun to write
  std::vector<std::byte> buffer_;  // the last bytes, not yet in the file
};

}  // namespace minimind
