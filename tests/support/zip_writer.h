#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/support/little_endian.h"

namespace minimind {

// Builds zip archives of stored members, corrupt ones included.
class ZipWriter {
 public:
  struct Options {
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::optional<std::string> local_name = {};             // differs from the directory's
    std::optional<std::uint32_t> compressed_size = {};      // differs from the real one
    std::optional<std::uint32_t> size = {};                 // differs from the real one
    std::optional<std::uint32_t> local_header_offset = {};  // differs from the real one
    std::string extra = {};                                 // of the directory's record
  };

  void add(std::string_view name, std::string_view data) { add(name, data, Options{}); }

  void add(std::string_view name, std::string_view data, const Options& options) {
    const auto offset = static_cast<std::uint32_t>(archive_.size());
    const auto size = static_cast<std::uint32_t>(data.size());
    const std::string_view local_name = options.local_name ? *options.local_name : name;
    archive_ += "PK\x03\x04" + std::string(22, '\0') + size16(local_name) + size16("") + std::string(local_name);
    archive_ += data;
    directory_ += "PK\x01\x02" + std::string(4, '\0') + little_endian(options.flags) + little_endian(options.method);
    directory_ += std::string(8, '\0') + little_endian(options.compressed_size.value_or(size));
    directory_ += little_endian(options.size.value_or(size)) + size16(name) + size16(options.extra) + size16("");
    directory_ += std::string(8, '\0') + little_endian(options.local_header_offset.value_or(offset));
    directory_ += std::string(name) + options.extra;
    ++count_;
  }

  // Returns the archive with an end record of 22 bytes and a comment.
  std::string finish(std::string_view comment = {}) const {
    const auto count = static_cast<std::uint16_t>(count_);
    return archive_ + directory_ +
           end_record(count, static_cast<std::uint32_t>(directory_.size()), static_cast<std::uint32_t>(archive_.size()),
                      comment);
  }

  // Returns the archive with a zip64 end record, to which the end record refers by fields of all ones.
  std::string finish_zip64() const {
    const std::uint64_t record_offset = archive_.size() + directory_.size();
    std::string end = "PK\x06\x06" + little_endian(std::uint64_t{44}) + std::string(12, '\0') + little_endian(count_) +
                      little_endian(count_) + little_endian(std::uint64_t{directory_.size()}) +
                      little_endian(std::uint64_t{archive_.size()});
    end += "PK\x06\x07" + std::string(4, '\0') + little_endian(record_offset) + little_endian(std::uint32_t{1});
    return archive_ + directory_ + end + end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, {});
  }

  static std::string end_record(std::uint16_t count, std::uint32_t size, std::uint32_t offset,
                                std::string_view comment) {
    return "PK\x05\x06" + std::string(4, '\0') + little_endian(count) + little_endian(count) + little_endian(size) +
           little_endian(offset) + size16(comment) + std::string(comment);
  }

 private:
  static std::string size16(std::string_view text) { return little_endian(static_cast<std::uint16_t>(text.size())); }

  std::string archive_;
  std::string directory_;
  std::uint64_t count_ = 0;
};

}  // namespace minimind
