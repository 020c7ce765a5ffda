#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weights/io/input_file.h"

namespace minimind {

// A cursor over bytes in memory or over a part of a file, of which it keeps only what it returned last. Every read is
// checked against the end: a read past the end throws Error. Messages start with `where`, the file and the part of it.
// Numbers are little-endian.
class ByteReader {
 public:
  // The bytes must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string where)
      : ready_(bytes), remaining_(bytes.size()), where_(std::move(where)) {}
  // The file must outlive the reader, and have the part.
  ByteReader(const InputFile& file, FilePart part, std::string where)
      : file_(&file), begin_(part.offset), remaining_(part.size), where_(std::move(where)) {}

  ByteReader(ByteReader&&) = default;
  ByteReader& operator=(ByteReader&&) = default;

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return remaining_; }

  // Returns the next bytes. Those of a file are valid until the next read, and all of them are in memory: `count` must
  // have been checked against a limit.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > ready_.size()) require(count);
    const auto part = ready_.first(static_cast<std::size_t>(count));
    advance(part.size());
    return part;
  }

  std::string_view take_text(std::uint64_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  // Reads the text before the next line feed, of at most 64 KiB; consumes the line feed too.
  std::string_view take_line();

  // Passes over bytes without reading them.
  void skip(std::uint64_t count);

  // Reads the next bytes into `out`.
  void read_into(std::span<std::byte> out);

  template <typename T>
  T read() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  // Replaces what messages start with.
  void set_where(std::string where) { where_ = std::move(where); }

  [[noreturn]] void fail(std::string_view reason) const;

 private:
  static constexpr std::size_t read_ahead = std::size_t{1} << 16;  // bytes of a file that are read at once

  void advance(std::size_t count) {
    ready_ = ready_.subspan(count);
    position_ += count;
    remaining_ -= count;
  }
  void check_remaining(std::uint64_t count) const;
  void require(std::uint64_t count);

  std::span<const std::byte> ready_;  // the next bytes, as far as they are in memory
  const InputFile* file_ = nullptr;
  std::size_t begin_ = 0;  // of the part in the file
  std::size_t position_ = 0;
  std::size_t remaining_;
  std::vector<std::byte> buffer_;  // ready_ is in it if there is a file
  std::string where_;
};

}  // namespace minimind
