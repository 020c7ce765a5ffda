#include "weights/io/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "weights/base/error.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece = std::size_t{1} << 20;
constexpr std::uint64_t window = 8 * piece;

void check_target(const std::string& path) {
  if (path.empty()) throw Error("the name of the file to write is empty");
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) {
    throw Error(fmt::format("{}: is a folder, expected a file to write", path));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(fmt::format("{}: is not a regular file, so it cannot be replaced; name another", path));
  }
}

}  // namespace

std::string output_target(const std::string& path) {
  std::error_code failed;
  const fs::path canonical = fs::canonical(path, failed);
  return failed ? path : canonical.string();
}

OutputFile::OutputFile(std::string path, Watch watch, Readers readers)
    : path_(std::move(path)), watch_(std::move(watch)), readers_(readers) {
  check_target(path_);
  final_path_ = output_target(path_);
  buffer_.reserve(piece);
  remove_stale_parts(final_path_);
  while (!open_part()) continue;
}

// Returns false if the name is taken, or if another process removed the file before it was locked.
bool OutputFile::open_part() {
  temporary_path_ = part_path(final_path_);
  unfinished_.emplace(temporary_path_);
  const mode_t mode = readers_ == Readers::owner ? 0600 : 0666;
  descriptor_ = ::open(temporary_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor_ < 0) {
    if (errno == EEXIST || errno == EINTR) return false;
    if (errno == EACCES || errno == EPERM || errno == EROFS) {
      throw Error(fmt::format("{}: cannot be written: its folder is read-only: {}; choose another folder", path_,
                              std::strerror(errno)));
    }
    fail(errno);
  }
  if (readers_ == Readers::owner) ::fchmod(descriptor_, mode);  // a umask may have taken the owner's rights
  if (lock_part(descriptor_)) return true;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_path_.c_str());
  return false;
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
      written_to(size_ - bytes.size());
      continue;
    }
    const auto part = bytes.first(std::min(bytes.size(), piece - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() < piece) continue;
    write_at(size_ - bytes.size() - buffer_.size(), buffer_);
    buffer_.clear();
    written_to(size_ - bytes.size());
  }
}

// Lets the disk write while the file grows. Otherwise it would write all at the end, in one call that no signal can
// interrupt.
void OutputFile::written_to(std::uint64_t end) {
  if (watch_) watch_(end);
  if (end - sent_ < window) return;
  // Not every file system can do this; then it is only slower.
  ::sync_file_range(descriptor_, static_cast<off_t>(sent_), window, SYNC_FILE_RANGE_WRITE);
  if (sent_ >= window) {
    ::sync_file_range(descriptor_, static_cast<off_t>(sent_ - window), window,
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }
  sent_ += window;
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
  finished_ = true;
  if (watch_) watch_(size_);
}

void OutputFile::commit() {
  if (!finished_) finish();
  if (std::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) fail(errno);
  temporary_path_.clear();
  unfinished_.reset();
  // Closed after renaming, because the descriptor holds the lock. fsync has already reported any error of closing.
  ::close(std::exchange(descriptor_, -1));
}

void OutputFile::fail(int error) const {
  throw Error(fmt::format("{}: cannot be written: {}{}", path_, std::strerror(error), advice_on_home(path_)));
}

}  // namespace minimind
