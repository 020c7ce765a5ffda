#include "weights/io/byte_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "weights/base/error.h"

namespace minimind {

void ByteReader::check_remaining(std::uint64_t count) const {
  if (count > remaining_) {
    fail(fmt::format("{} bytes are left at offset {}, expected {}; the file is corrupt or truncated", remaining_,
                     position_, count));
  }
}

// Reads ahead in the file until the next `count` bytes are in memory.
void ByteReader::require(std::uint64_t count) {
  check_remaining(count);
  const std::size_t wanted = std::min(std::max(static_cast<std::size_t>(count), read_ahead), remaining_);
  std::vector<std::byte> longer;
  if (wanted > buffer_.size()) longer.resize(wanted);
  std::vector<std::byte>& target = longer.empty() ? buffer_ : longer;
  std::copy(ready_.begin(), ready_.end(), target.begin());
  const std::size_t known = ready_.size();
  file_->read(begin_ + position_ + known, std::span(target).subspan(known, wanted - known));
  if (!longer.empty()) buffer_ = std::move(longer);
  ready_ = std::span<const std::byte>(buffer_).first(wanted);
}

std::string_view ByteReader::take_line() {
  const std::size_t longest = std::min(remaining_, read_ahead);
  if (ready_.size() < longest) require(longest);
  const std::string_view rest(reinterpret_cast<const char*>(ready_.data()), std::min(ready_.size(), longest));
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    fail(fmt::format("the line at offset {} {}", position_,
                     longest == remaining_ ? "never ends" : fmt::format("has more than {} bytes", longest)));
  }
  advance(end + 1);
  return rest.substr(0, end);
}

void ByteReader::skip(std::uint64_t count) {
  check_remaining(count);
  if (count <= ready_.size()) return advance(static_cast<std::size_t>(count));
  const auto bytes = static_cast<std::size_t>(count);
  ready_ = {};
  position_ += bytes;
  remaining_ -= bytes;
}

void ByteReader::read_into(std::span<std::byte> out) {
  check_remaining(out.size());
  const auto known = take(std::min(out.size(), ready_.size()));
  std::copy(known.begin(), known.end(), out.begin());
  const auto rest = out.subspan(known.size());
  if (rest.empty()) return;
  file_->read(begin_ + position_, rest);
  skip(rest.size());
}

void ByteReader::fail(std::string_view reason) const {
  throw Error(fmt::format("{}: {}", where_, reason));
}

}  // namespace minimind
