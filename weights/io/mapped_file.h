#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace minimind {

// A whole file mapped read-only. The bytes stay valid, at the same address, for the lifetime of the object.
class MappedFile {
 public:
  // Throws Error if the file is missing, not a regular file, empty or cannot be mapped. For a file that the user names,
  // see open_input in mistaken_file.h.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Advises the kernel that `part` of the file is no longer needed, so that a loaded model is not resident twice. Only
  // whole pages are released; reading them again is slow, but correct.
  void release(std::span<const std::byte> part) const noexcept;

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size);

  std::string path_;
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace minimind
