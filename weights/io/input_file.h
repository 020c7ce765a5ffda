#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// A regular file that is read piece by piece. It is not mapped: if another program truncates a mapped file, the next
// access ends the process with SIGBUS. Any number of threads may read.
class InputFile {
 public:
  // Throws Error if the file is missing, not a regular file or empty. Never waits, whatever has that name. For a file
  // that the user names, see open_input(). Takes a file in memory, too: see provide_file().
  static std::shared_ptr<const InputFile> open(const std::string& path);

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }

  // Returns the first bytes of the file, at most 1 KiB, which tell its format.
  std::span<const std::byte> start() const { return start_; }

  // Fills `out` with the bytes from `offset` on, which must be in the file. Throws Cancelled. Throws Error if the disk
  // fails, and if the file has another size or time of writing than when it was opened: its bytes may be of two files.
  void read(std::size_t offset, std::span<std::byte> out) const;

  // Returns the whole file. Throws Error, too, if it is over `largest` bytes.
  std::string read_text(std::size_t largest) const;

 private:
  static constexpr std::size_t start_size = 1024, most = std::size_t{1} << 24;  // bytes read at once

  InputFile(std::string path, int descriptor, const struct stat& status);
  InputFile(std::string path, std::span<const std::byte> provided);

  std::string path_;
  std::span<const std::byte> bytes_{};  // of a file in memory
  int descriptor_;
  std::size_t size_;
  timespec written_;
  std::vector<std::byte> start_;
};

// Where a part of a file is.
struct FilePart {
  std::size_t offset = 0;
  std::size_t size = 0;
};

// Opens a file that the user named. Throws Error as InputFile::open and check_not_mistaken do.
std::shared_ptr<const InputFile> open_input(const std::string& path);

// Throws Error if the content, of which `start` is the beginning, is that of a mistaken download: a Git LFS pointer, a
// web page, or an archive. A zip archive is accepted, because torch.save writes one.
void check_not_mistaken(std::string_view start, std::size_t size, const std::string& path);

// Returns how a file that is not a model starts, as the end of a message: " and starts with '...'". Empty if the file
// is not text.
std::string shown_text(std::span<const std::byte> start);

}  // namespace minimind
