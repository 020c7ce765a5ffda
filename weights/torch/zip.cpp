#include "weights/torch/zip.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/byte_reader.h"

namespace minimind {
namespace {

constexpr std::uint32_t local_header = 0x04034B50;
constexpr std::uint32_t central_header = 0x02014B50;
constexpr std::uint32_t end_record_signature = 0x06054B50;
constexpr std::uint32_t zip64_end_record = 0x06064B50;
constexpr std::uint32_t zip64_locator = 0x07064B50;
constexpr std::size_t central_header_size = 46;
constexpr std::size_t end_record_size = 22;
constexpr std::size_t zip64_end_record_size = 56;
constexpr std::size_t zip64_locator_size = 20;
constexpr std::size_t longest_comment = 0xFFFF;
constexpr std::size_t local_header_size = 30;
// Our own limits, so that a file cannot take more memory and time than its weights justify.
constexpr std::uint64_t largest_directory = std::uint64_t{32} << 20;
constexpr std::uint64_t most_members = std::uint64_t{1} << 18;
constexpr std::uint16_t zip64_extra_field = 0x0001;
// A 16- or 32-bit field with all bits set means that the value is in the zip64 record.
constexpr std::uint16_t in_zip64_short = 0xFFFF;
constexpr std::uint32_t in_zip64_long = 0xFFFFFFFF;
// Bits of the general purpose flags: encrypted, strongly encrypted, directory encrypted.
constexpr std::uint16_t encrypted_flags = (1u << 0) | (1u << 6) | (1u << 13);

struct Directory {
  std::uint64_t member_count;
  std::uint64_t size;
  std::uint64_t offset;
};

struct CentralHeader {
  std::string name;
  std::uint16_t flags;
  std::uint16_t method;
  std::uint64_t compressed_size;
  std::uint64_t size;
  std::uint64_t local_header_offset;
};

class ZipReader {
 public:
  explicit ZipReader(const InputFile& archive) : archive_(archive), path_(archive.path()) {}

  ZipMembers read() const;

 private:
  ByteReader reader_at(std::uint64_t offset, std::uint64_t size, std::string_view part) const;
  std::size_t find_end_record() const;
  template <class Count, class Size>
  static Directory take_directory(ByteReader& reader) {
    return {.member_count = reader.read<Count>(), .size = reader.read<Size>(), .offset = reader.read<Size>()};
  }
  Directory read_end_record() const;
  std::optional<Directory> read_zip64_end_record(std::size_t end_record) const;
  CentralHeader read_central_header(ByteReader& reader) const;
  void read_zip64_extra(std::span<const std::byte> extra, CentralHeader& header) const;
  FilePart locate(const CentralHeader& header, std::uint64_t limit) const;
  [[noreturn]] void fail(std::string_view reason) const { throw Error(fmt::format("{}: {}", path_, reason)); }

  const InputFile& archive_;
  const std::string& path_;
};

ByteReader ZipReader::reader_at(std::uint64_t offset, std::uint64_t size, std::string_view part) const {
  if (offset > archive_.size() || size > archive_.size() - offset) {
    fail(fmt::format("the {} should be {} bytes at offset {}, but the file has {}; copy or download it again", part,
                     size, offset, archive_.size()));
  }
  return {
      archive_, {static_cast<std::size_t>(offset), static_cast<std::size_t>(size)}, fmt::format("{}: {}", path_, part)};
}

// The record is at the end of the file, followed only by a comment of stated length.
std::size_t ZipReader::find_end_record() const {
  std::vector<std::byte> end(std::min(archive_.size(), end_record_size + longest_comment));
  const std::size_t offset = archive_.size() - end.size();
  archive_.read(offset, end);
  for (std::size_t at = end.size(); at-- > 0;) {
    ByteReader reader(std::span<const std::byte>(end).subspan(at), {});
    if (reader.remaining() < end_record_size || reader.read<std::uint32_t>() != end_record_signature) continue;
    reader.take(16);
    if (reader.read<std::uint16_t>() == reader.remaining()) return offset + at;
  }
  fail("is truncated: the zip archive has no end-of-directory record; copy or download it again");
}

Directory ZipReader::read_end_record() const {
  const std::size_t at = find_end_record();
  ByteReader reader = reader_at(at, end_record_size, "zip end-of-directory record");
  reader.take(4);
  const auto disk = reader.read<std::uint16_t>();
  const auto first_disk = reader.read<std::uint16_t>();
  const auto members_on_disk = reader.read<std::uint16_t>();
  const auto directory = take_directory<std::uint16_t, std::uint32_t>(reader);
  const auto zip64 = read_zip64_end_record(at);
  const bool in_zip64 =
      directory.member_count == in_zip64_short || directory.size == in_zip64_long || directory.offset == in_zip64_long;
  if (in_zip64 && zip64) return *zip64;
  if (directory.size == in_zip64_long || directory.offset == in_zip64_long) {
    fail("is corrupt: the zip archive has no zip64 end record, expected one; copy or download it again");
  }
  if (disk != 0 || first_disk != 0 || members_on_disk != directory.member_count) {
    fail("is part of a zip archive split over several files; join it first");
  }
  return directory;
}

std::optional<Directory> ZipReader::read_zip64_end_record(std::size_t end_record) const {
  if (end_record < zip64_locator_size) return std::nullopt;
  ByteReader locator = reader_at(end_record - zip64_locator_size, zip64_locator_size, "zip64 locator");
  if (locator.read<std::uint32_t>() != zip64_locator) return std::nullopt;
  const auto disk = locator.read<std::uint32_t>();
  const auto offset = locator.read<std::uint64_t>();
  const auto disk_count = locator.read<std::uint32_t>();
  ByteReader reader = reader_at(offset, zip64_end_record_size, "zip64 end-of-directory record");
  if (reader.read<std::uint32_t>() != zip64_end_record) {
    fail(fmt::format("is corrupt: no zip64 end-of-directory record at offset {}; copy or download it again", offset));
  }
  reader.take(12);  // the record's size and the versions of the writer
  const auto this_disk = reader.read<std::uint32_t>();
  const auto first_disk = reader.read<std::uint32_t>();
  const auto members_on_disk = reader.read<std::uint64_t>();
  const auto directory = take_directory<std::uint64_t, std::uint64_t>(reader);
  // Some writers number disks from 0, some from 1.
  if (disk != 0 || disk_count > 1 || this_disk != 0 || first_disk != 0 || members_on_disk != directory.member_count) {
    fail("is part of a zip archive split over several files; join it first");
  }
  return directory;
}

CentralHeader ZipReader::read_central_header(ByteReader& reader) const {
  if (reader.read<std::uint32_t>() != central_header) {
    fail("is corrupt: a record of the zip directory has no signature; copy or download it again");
  }
  CentralHeader header{};
  reader.take(4);  // versions
  header.flags = reader.read<std::uint16_t>();
  header.method = reader.read<std::uint16_t>();
  reader.take(8);  // time, date, CRC-32
  header.compressed_size = reader.read<std::uint32_t>();
  header.size = reader.read<std::uint32_t>();
  const auto name_size = reader.read<std::uint16_t>();
  const auto extra_size = reader.read<std::uint16_t>();
  const auto comment_size = reader.read<std::uint16_t>();
  reader.take(8);  // disk, attributes
  header.local_header_offset = reader.read<std::uint32_t>();
  header.name = reader.take_text(name_size);
  read_zip64_extra(reader.take(extra_size), header);
  reader.skip(comment_size);
  return header;
}

// Replaces each field of `header` that is in the zip64 extra field, in this order.
void ZipReader::read_zip64_extra(std::span<const std::byte> extra, CentralHeader& header) const {
  const std::string where = fmt::format("{}: extra field of zip member {}", path_, quote(header.name));
  ByteReader reader(extra, where);
  // Fewer than four bytes are padding, which some writers leave at the end.
  while (reader.remaining() >= 4) {
    const auto id = reader.read<std::uint16_t>();
    const auto size = reader.read<std::uint16_t>();
    const auto content = reader.take(size);
    if (id != zip64_extra_field) continue;
    ByteReader field(content, where);
    for (std::uint64_t* value : {&header.size, &header.compressed_size, &header.local_header_offset}) {
      if (*value == in_zip64_long) *value = field.read<std::uint64_t>();
    }
    return;
  }
}

// Returns where the member's bytes are. They must end before `limit`, where the directory starts.
FilePart ZipReader::locate(const CentralHeader& header, std::uint64_t limit) const {
  const std::string part = fmt::format("zip member {}", quote(header.name));
  if ((header.flags & encrypted_flags) != 0) {
    fail(fmt::format("{} is encrypted; extract it and save the checkpoint again with torch.save", part));
  }
  if (header.method != 0) {
    fail(
        fmt::format("{} is compressed (method {}): torch.save never does so; unpack an archive and name the model in "
                    "it, or, of TorchScript, use "
                    "torch.save(model.state_dict(), ...)",
                    part, header.method));
  }
  if (header.compressed_size != header.size) {
    fail(fmt::format("{} is stored, but has two sizes, {} and {} bytes; copy or download the file again", part,
                     header.compressed_size, header.size));
  }
  if (header.local_header_offset > limit) {
    fail(fmt::format("{} starts at offset {}, expected before the zip directory at {}; copy or download the file again",
                     part, header.local_header_offset, limit));
  }
  const std::uint64_t available = limit - header.local_header_offset;
  ByteReader reader = reader_at(header.local_header_offset,
                                std::min<std::uint64_t>(available, local_header_size + header.name.size()), part);
  if (reader.read<std::uint32_t>() != local_header) {
    fail(fmt::format("{} has no header at offset {}; copy or download the file again", part,
                     header.local_header_offset));
  }
  reader.take(22);  // the same fields as in the directory, which counts: here they may be zero
  const auto name_size = reader.read<std::uint16_t>();
  const auto extra_size = reader.read<std::uint16_t>();
  const auto name = reader.take_text(std::min<std::size_t>(name_size, reader.remaining()));
  if (name_size != header.name.size() || name != header.name) {
    fail(fmt::format("{} is {} in its own header; copy or download the file again", part, quote(name)));
  }
  const std::uint64_t before = local_header_size + name_size + extra_size;
  if (before > available || header.size > available - before) {
    fail(fmt::format("{}: {} bytes are left before the zip directory, expected {}; the file is corrupt or truncated",
                     part, before > available ? 0 : available - before, header.size));
  }
  return {static_cast<std::size_t>(header.local_header_offset + before), static_cast<std::size_t>(header.size)};
}

ZipMembers ZipReader::read() const {
  const Directory directory = read_end_record();
  if (directory.size > largest_directory || directory.member_count > most_members) {
    fail(fmt::format("the zip directory has {} members and {} bytes, expected at most {} and {}",
                     directory.member_count, directory.size, most_members, largest_directory));
  }
  ByteReader reader = reader_at(directory.offset, directory.size, "zip directory");
  if (directory.member_count > directory.size / central_header_size) {
    fail(fmt::format("the zip directory of {} bytes cannot list {} members; copy or download the file again",
                     directory.size, directory.member_count));
  }
  ZipMembers members;
  for (std::uint64_t i = 0; i < directory.member_count; ++i) {
    const CentralHeader header = read_central_header(reader);
    if (!members.emplace(header.name, locate(header, directory.offset)).second) {
      fail(fmt::format("zip member {} is repeated, expected once; save it again", quote(header.name)));
    }
  }
  if (reader.remaining() != 0) {
    fail(fmt::format("the zip directory has {} bytes after its {} members; copy or download the file again",
                     reader.remaining(), directory.member_count));
  }
  return members;
}

}  // namespace

ZipMembers read_zip_directory(const InputFile& archive) {
  return ZipReader(archive).read();
}

}  // namespace minimind
