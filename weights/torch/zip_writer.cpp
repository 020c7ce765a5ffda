#include "weights/torch/zip_writer.h"

#include <fmt/core.h>
#include <zlib.h>

#include <type_traits>
#include <utility>

#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::size_t crc_position = 14;  // in a local header
constexpr std::uint16_t zip64_extra = 0x0001;
constexpr std::uint16_t padding_extra = 0x4246;  // "FB", which torch.save uses and every reader skips
constexpr std::uint16_t version_plain = 20;
constexpr std::uint16_t version_zip64 = 45;
constexpr std::uint16_t first_of_january_1980 =
    0x0021;  // the first date of zip, so that files do not depend on the clock

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <class Number>
void put(std::string& out, Number value) {
  static_assert(std::is_unsigned_v<Number>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The fields of both headers of a member between the version and the sizes: flags, method, time, date, CRC-32.
void put_description(std::string& out, std::uint32_t crc) {
  put(out, std::uint16_t{0});
  put(out, std::uint16_t{0});  // stored
  put(out, std::uint16_t{0});
  put(out, first_of_january_1980);
  put(out, crc);
}

}  // namespace

std::string ZipFileWriter::local_header(const Member& member) const {
  const bool zip64 = is_large(member.size);
  std::string extra;
  if (zip64) {
    put(extra, zip64_extra);
    put(extra, std::uint16_t{16});
    put(extra, member.size);
    put(extra, member.size);
  }
  std::string header = "PK\x03\x04";
  put(header, zip64 ? version_zip64 : version_plain);
  put_description(header, member.crc);
  put(header, zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(member.size));
  put(header, zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(member.size));
  put(header, static_cast<std::uint16_t>(member.name.size()));
  // A padding field takes at least four bytes.
  const std::uint64_t unpadded = member.offset + header.size() + 2 + member.name.size() + extra.size();
  if (unpadded % alignment != 0) {
    const std::uint64_t fill = (2 * alignment - 4 - unpadded % alignment) % alignment;
    put(extra, padding_extra);
    put(extra, static_cast<std::uint16_t>(fill));
    extra.append(fill, 'Z');
  }
  put(header, static_cast<std::uint16_t>(extra.size()));
  return header + member.name + extra;
}

std::string ZipFileWriter::central_header(const Member& member) const {
  std::string values;
  if (is_large(member.size)) {
    put(values, member.size);
    put(values, member.size);
  }
  if (is_large(member.offset)) put(values, member.offset);
  std::string extra;
  if (!values.empty()) {
    put(extra, zip64_extra);
    put(extra, static_cast<std::uint16_t>(values.size()));
    extra += values;
  }
  const std::uint16_t version = extra.empty() ? version_plain : version_zip64;
  std::string header = "PK\x01\x02";
  put(header, version);  // made by
  put(header, version);  // needed to extract
  put_description(header, member.crc);
  put(header, short_field(member.size));
  put(header, short_field(member.size));
  put(header, static_cast<std::uint16_t>(member.name.size()));
  put(header, static_cast<std::uint16_t>(extra.size()));
  header.append(10, '\0');  // comment, disk, attributes
  put(header, short_field(member.offset));
  return header + member.name + extra;
}

std::string ZipFileWriter::end_records(std::uint64_t directory_offset, std::uint64_t directory_size) const {
  const std::uint64_t count = members_.size();
  std::string records;
  if (is_large(directory_offset) || is_large(directory_size) || count >= 0xFFFF) {
    records += "PK\x06\x06";
    put(records, std::uint64_t{44});  // the bytes that follow
    put(records, version_zip64);
    put(records, version_zip64);
    records.append(8, '\0');  // disks
    put(records, count);
    put(records, count);
    put(records, directory_size);
    put(records, directory_offset);
    records += "PK\x06\x07";
    records.append(4, '\0');
    put(records, directory_offset + directory_size);
    put(records, std::uint32_t{1});
  }
  const auto short_count = static_cast<std::uint16_t>(count >= 0xFFFF ? 0xFFFF : count);
  records += "PK\x05\x06";
  records.append(4, '\0');
  put(records, short_count);
  put(records, short_count);
  put(records, short_field(directory_size));
  put(records, short_field(directory_offset));
  put(records, std::uint16_t{0});
  return records;
}

void ZipFileWriter::add(const std::string& name, std::uint64_t size, const std::function<void(const Write&)>& produce) {
  Member member{.name = name, .size = size, .offset = file_.size(), .crc = 0};
  file_.write(bytes_of(local_header(member)));
  const std::uint64_t begin = file_.size();
  uLong crc = 0;
  produce([&](std::span<const std::byte> bytes) {
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    file_.write(bytes);
  });
  if (file_.size() - begin != size) {
    throw Error(fmt::format("{}: zip member {} has {} bytes, expected {} as announced", file_.path(), name,
                            file_.size() - begin, size));
  }
  member.crc = static_cast<std::uint32_t>(crc);
  file_.rewrite(member.offset + crc_position, {reinterpret_cast<const std::byte*>(&member.crc), sizeof member.crc});
  members_.push_back(std::move(member));
}

void ZipFileWriter::add(const std::string& name, std::string_view content) {
  add(name, content.size(), [&](const Write& write) { write(bytes_of(content)); });
}

void ZipFileWriter::finish() {
  const std::uint64_t offset = file_.size();
  for (const Member& member : members_) file_.write(bytes_of(central_header(member)));
  file_.write(bytes_of(end_records(offset, file_.size() - offset)));
}

}  // namespace minimind
