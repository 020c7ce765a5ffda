#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/io/output_file.h"

namespace minimind {

// A writer of zip archives with stored members (PKWARE APPNOTE 6.3) in torch.save's layout: the bytes of each member
// start at a multiple of 64, so that mapped tensors are aligned.
class ZipFileWriter {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;

  // Archives with sizes or offsets of at least `zip64_from` get zip64 fields for these.
  explicit ZipFileWriter(OutputFile& file, std::uint64_t zip64_from = 0xFFFFFFFFu)
      : file_(file), zip64_from_(zip64_from) {}

  // Writes a member of `size` bytes, which produce(write) passes to write(bytes). Throws Error if it passes another
  // number.
  void add(const std::string& name, std::uint64_t size, const std::function<void(const Write&)>& produce);
  void add(const std::string& name, std::string_view content);

  // Writes the directory. The caller must still commit the file.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t size;
    std::uint64_t offset;
    std::uint32_t crc;
  };

  std::string local_header(const Member& member) const;
  std::string central_header(const Member& member) const;
  std::string end_records(std::uint64_t directory_offset, std::uint64_t directory_size) const;
  bool is_large(std::uint64_t value) const { return value >= zip64_from_; }
  std::uint32_t short_field(std::uint64_t value) const {
    return is_large(value) ? 0xFFFFFFFFu : static_cast<std::uint32_t>(value);
  }

  OutputFile& file_;
  std::uint64_t zip64_from_;
  std::vector<Member> members_;
};

}  // namespace minimind
