#include "tools/commands/npy.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

bool is_file_or_new(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  return !fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status);
}

// Opening a FIFO without readers fails instead of waiting for one. Writing waits for them. Null if it fails.
std::FILE* open_to_write(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return ::fdopen(descriptor, "wb");
}

// Reads a number below 10^15, and the spaces before it, from the start of `text`.
std::optional<std::size_t> take_size(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto size = take_number<std::size_t>(text);
  return size < std::size_t{1'000'000'000'000'000} ? size : std::nullopt;
}

// Returns the text after `key`; nullopt if the header does not have the key exactly once.
std::optional<std::string_view> after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos || header.find(key, at + 1) != std::string_view::npos) return std::nullopt;
  return header.substr(at + key.size());
}

bool has_float32(std::string_view header) {
  const auto type = after(header, "'descr': "), order = after(header, "'fortran_order': ");
  return type && type->starts_with("'<f4'") && order && order->starts_with("False");
}

// Reads a shape of two dimensions, as Python prints a tuple.
std::optional<std::pair<std::size_t, std::size_t>> shape_in(std::string_view header) {
  const auto shape = after(header, "'shape': ");
  if (!shape || !shape->starts_with('(')) return std::nullopt;
  header = shape->substr(1);
  const auto rows = take_size(header);
  if (!rows || !header.starts_with(',')) return std::nullopt;
  header.remove_prefix(1);
  const auto cols = take_size(header);
  if (!cols || !(header.starts_with(')') || header.starts_with(",)"))) return std::nullopt;
  return std::pair(*rows, *cols);
}

}  // namespace

NpyWriter::NpyWriter(std::string path) : path_(std::move(path)) {
  if (is_file_or_new(path_)) {
    file_.emplace(path_);
  } else {
    stream_ = open_to_write(path_);
    if (!stream_) fail();
  }
}

// The format (numpy/lib/format.py): magic, version, length of the header, header padded to a multiple of 64, data.
NpyWriter::NpyWriter(std::string path, std::size_t rows, std::size_t cols) : NpyWriter(std::move(path)) {
  constexpr std::size_t before_header = 10;
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  header.append(63 - (before_header + header.size()) % 64, ' ');
  header += '\n';
  const char start[before_header] = {'\x93',
                                     'N',
                                     'U',
                                     'M',
                                     'P',
                                     'Y',
                                     1,
                                     0,
                                     static_cast<char>(header.size() & 0xFF),
                                     static_cast<char>(header.size() >> 8)};
  write(std::as_bytes(std::span(start)));
  write(std::as_bytes(std::span(header)));
}

NpyWriter::~NpyWriter() {
  if (stream_) std::fclose(stream_);
}

void NpyWriter::write(Matrix<const float> rows) {
  write(std::as_bytes(std::span(rows.data, rows.rows * rows.cols)));
}

void NpyWriter::write(std::span<const std::byte> bytes) {
  if (file_) return file_->write(bytes);
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) fail();
}

void NpyWriter::finish() {
  if (file_) return file_->commit();
  if (std::fclose(std::exchange(stream_, nullptr)) != 0) fail();
}

void NpyWriter::fail() const {
  const bool no_reader = errno == ENXIO;
  throw Error(fmt::format("{}: cannot be written: {}", path_,
                          no_reader ? "no process reads this pipe; start the reader first" : std::strerror(errno)));
}

NpyReader::NpyReader(const std::string& path) : file_(open_input(path)) {
  const auto bytes = file_->start();
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(bytes[i]); };
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    throw Error(fmt::format("{}: is not a .npy file", path));
  }
  if (byte(6) < 1 || byte(6) > 3) {
    throw Error(fmt::format("{}: has version {} of .npy, expected 1 to 3", path, byte(6)));
  }
  const bool version_1 = byte(6) == 1;
  const std::size_t start = version_1 ? 10 : 12;
  const std::size_t length = byte(8) | byte(9) << 8 | (version_1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > file_->size() - start) throw Error(fmt::format("{}: is truncated inside its header", path));
  const auto header_bytes = bytes.subspan(start).first(std::min(length, bytes.size() - start));
  const std::string header(reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size());
  const auto shape = shape_in(header);
  if (!has_float32(header) || !shape) {
    throw Error(fmt::format("{}: has {}, expected float32 ('<f4') in C order with the shape (tokens, vocabulary)", path,
                            quote(header.substr(0, header.find_last_not_of(" \n") + 1))));
  }
  rows_ = shape->first;
  cols_ = shape->second;
  const auto count = checked_product(rows_, cols_);
  const auto size = count ? checked_product(*count, sizeof(float)) : std::nullopt;
  if (!size || *size != file_->size() - start - length) {
    throw Error(fmt::format("{}: has {} bytes of data, expected {} x {} float32", path, file_->size() - start - length,
                            rows_, cols_));
  }
  data_ = start + length;
}

void NpyReader::read_row(std::size_t row, std::span<float> out) const {
  file_->read(data_ + row * cols_ * sizeof(float), std::as_writable_bytes(out));
}

}  // namespace minimind
