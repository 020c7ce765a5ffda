#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weights/io/error.h"

namespace minimind {

// A cursor over the bytes of a file. Every read is checked against the end: a read past the end throws Error. Messages
// start with `where`, the file and the part of it. Numbers are little-endian.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > remaining()) {
      fail(fmt::format("{} bytes are left at offset {}, expected {}; the file is corrupt or truncated", remaining(),
                       position_, count));
    }
    const auto part = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += part.size();
    return part;
  }

  std::string_view take_text(std::uint64_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  // Reads the text before the next line feed; consumes the line feed too.
  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_, remaining());
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail(fmt::format("the line at offset {} never ends", position_));
    position_ += end + 1;
    return rest.substr(0, end);
  }

  template <typename T>
  T read() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  [[noreturn]] void fail(std::string_view reason) const { throw Error(fmt::format("{}: {}", where_, reason)); }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t position_ = 0;
};

}  // namespace minimind
