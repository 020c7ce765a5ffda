#include "weights/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "weights/error.h"
#include "weights/mistaken_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece = std::size_t{1} << 20;

// Where a link to something that exists leads.
std::string resolved(const std::string& path) {
  std::error_code failed;
  const fs::path canonical = fs::canonical(path, failed);
  return failed ? path : canonical.string();
}

void check_target(const std::string& path) {
  if (path.empty()) throw Error("the name of the file to write is empty");
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) {
    throw Error(fmt::format("{}: is a folder, where a file is to be written", path));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(fmt::format("{}: is no regular file, so it cannot be replaced; name another", path));
  }
}

// A hidden name in the same folder, so that renaming never copies. Names may have 255 bytes.
std::string temporary_name(const fs::path& path) {
  static std::atomic<unsigned> count{0};
  const std::string name = path.filename().string().substr(0, 200);
  return (path.parent_path() / fmt::format(".{}.{}-{}.part", name, ::getpid(), count++)).string();
}

}  // namespace

OutputFile::OutputFile(std::string path, Watch watch) : path_(std::move(path)), watch_(std::move(watch)) {
  check_target(path_);
  final_path_ = resolved(path_);
  buffer_.reserve(piece);
  do {
    temporary_path_ = temporary_name(final_path_);
    descriptor_ = ::open(temporary_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
  if (descriptor_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    if (buffer_.empty() && bytes.size() >= piece) {
      write_at(size_ - bytes.size(), bytes.first(piece));
      bytes = bytes.subspan(piece);
      if (watch_) watch_(size_ - bytes.size());
      continue;
    }
    const auto part = bytes.first(std::min(bytes.size(), piece - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() < piece) continue;
    write_at(size_ - bytes.size() - buffer_.size(), buffer_);
    buffer_.clear();
    if (watch_) watch_(size_ - bytes.size());
  }
}

void OutputFile::rewrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset) {
    throw Error(fmt::format("{}: {} bytes cannot be rewritten at offset {} of {}", path_, bytes.size(), offset, size_));
  }
  flush();
  write_at(offset, bytes);
}

void OutputFile::flush() {
  write_at(size_ - buffer_.size(), buffer_);
  buffer_.clear();
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void OutputFile::finish() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(errno);  // EINVAL: this file system has no such thing
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
  if (watch_) watch_(size_);
}

void OutputFile::commit() {
  if (descriptor_ >= 0) finish();
  if (std::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) fail(errno);
  temporary_path_.clear();
}

void OutputFile::fail(int error) const {
  throw Error(fmt::format("{}: cannot be written: {}{}", path_, std::strerror(error), advice_on_home(path_)));
}

}  // namespace minimind
