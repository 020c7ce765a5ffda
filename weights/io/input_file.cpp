#include "weights/io/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

constexpr std::size_t start_size = 1024, most = std::size_t{1} << 24;  // bytes read at once

}  // namespace

std::shared_ptr<const InputFile> InputFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    throw Error(fmt::format("{}: cannot be opened: {}{}", path, std::strerror(errno), advice_on_home(path)));
  }
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(descriptor);
    if (known && S_ISREG(status.st_mode)) throw Error(fmt::format("{}: is empty; copy or save it again", path));
    const bool folder = known && S_ISDIR(status.st_mode);
    throw Error(
        fmt::format("{}: is {}", path, folder ? "a folder, expected a file; name a file in it" : "not a regular file"));
  }
  std::shared_ptr<InputFile> file(new InputFile(path, descriptor, status));
  file->start_.resize(std::min(file->size_, start_size));
  file->read(0, file->start_);
  return file;
}

InputFile::InputFile(std::string path, int descriptor, const struct stat& status)
    : path_(std::move(path)),
      descriptor_(descriptor),
      size_(static_cast<std::size_t>(status.st_size)),
      written_(status.st_mtim) {}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(std::size_t offset, std::span<std::byte> out) const {
  bool truncated = offset > size_ || out.size() > size_ - offset;
  while (!out.empty() && !truncated) {
    check_cancelled();
    const ssize_t count = ::pread(descriptor_, out.data(), std::min(out.size(), most), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
    truncated = count == 0;
    offset += static_cast<std::size_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  struct stat now {};
  const bool same = !truncated && ::fstat(descriptor_, &now) == 0 && static_cast<std::size_t>(now.st_size) == size_ &&
                    now.st_mtim.tv_sec == written_.tv_sec && now.st_mtim.tv_nsec == written_.tv_nsec;
  if (!same) throw Error(fmt::format("{}: was changed while it was read; read it again when it is complete", path_));
}

std::string InputFile::read_text(std::size_t largest) const {
  if (size_ > largest) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", path_, size_, largest));
  }
  std::string text(size_, '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace minimind
