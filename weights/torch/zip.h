#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/io/output_file.h"

namespace minimind {

// The members of a zip archive by name, each as its bytes inside the archive. Names and bytes point into `archive`.
using ZipMembers = std::map<std::string_view, std::span<const std::byte>>;

// Reads the central directory (PKWARE APPNOTE 6.3, zip64 included) of an archive whose members are stored, not
// compressed: the only kind torch.save writes. libzip is not used because it hands out copies only and never says
// where a stored member is; here the tensors are used in place, from the mapped file.
//
// Throws Error, starting with `path`, for an archive that is truncated, spans disks, has encrypted or compressed
// members, two members of one name, or a record that points outside the archive or disagrees with another.
// CRC-32s are not verified: PyTorch does not either, can be told not to write them, and it would read every page.
ZipMembers read_zip_directory(std::span<const std::byte> archive, const std::string& path);

// Writes a zip archive of stored members (PKWARE APPNOTE 6.3), as torch.save lays it out: the bytes of each member
// start at a multiple of 64, so that mapped tensors are aligned.
class ZipFileWriter {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;

  // Archives that hold sizes or offsets of `zip64_from` or more get zip64 fields for these.
  explicit ZipFileWriter(OutputFile& file, std::uint64_t zip64_from = 0xFFFFFFFFu)
      : file_(file), zip64_from_(zip64_from) {}

  // A member whose bytes, `size` in all, produce(write) hands to write(bytes). Throws Error if it does not.
  void add(const std::string& name, std::uint64_t size, const std::function<void(const Write&)>& produce);
  void add(const std::string& name, std::string_view content);

  // The directory. The file is still to be committed.
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
