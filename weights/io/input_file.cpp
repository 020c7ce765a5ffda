#include "weights/io/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/path.h"

namespace minimind {

std::shared_ptr<const InputFile> InputFile::open(const std::string& path) {
  if (const auto bytes = provided_file(path); !bytes.empty()) {
    return std::shared_ptr<InputFile>(new InputFile(path, bytes));
  }
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

InputFile::InputFile(std::string path, std::span<const std::byte> provided)
    : path_(std::move(path)),
      bytes_(provided),
      descriptor_(-1),
      size_(provided.size()),
      written_{},
      start_(provided.begin(), provided.begin() + static_cast<std::ptrdiff_t>(std::min(provided.size(), start_size))) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::size_t offset, std::span<std::byte> out) const {
  bool truncated = offset > size_ || out.size() > size_ - offset;
  if (descriptor_ < 0 && !truncated) {
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
    return;
  }
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

namespace {

// Returns the text after `key` in its line.
std::string_view line_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of("\r\n"));
}

bool is_git_lfs_pointer(std::string_view content) {
  return content.starts_with("version https://git-lfs") || content.starts_with("version https://hawser");
}

bool is_web_page(std::string_view content) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  const std::size_t at = content.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  const std::string start = lower_case(content.substr(at, 16));
  for (const char* tag : {"<!doctype", "<html", "<head", "<body", "<?xml", "<error>"}) {
    if (start.starts_with(tag)) return true;
  }
  return false;
}

// Returns the name of the format. The length at the start of safetensors may look like gzip, but '{' follows it.
std::string_view archive_format(std::string_view content) {
  using namespace std::string_view_literals;
  if (content.starts_with("\x1f\x8b\x08"sv) && !(content.size() > 8 && content[8] == '{')) return "gzip";
  if (content.starts_with("7z\xbc\xaf\x27\x1c"sv)) return "7z";
  if (content.starts_with("\xfd\x37zXZ\0"sv)) return "xz";
  if (content.starts_with("BZh"sv) && content.size() > 4 && content.substr(4).starts_with("1AY&SY"sv)) return "bzip2";
  if (content.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (content.starts_with("Rar!\x1a\x07"sv)) return "rar";
  if (content.size() > 262 && content.substr(257, 5) == "ustar"sv) return "tar";
  return "";
}

}  // namespace

std::shared_ptr<const InputFile> open_input(const std::string& path) {
  auto file = InputFile::open(path);
  const auto start = file->start();
  check_not_mistaken({reinterpret_cast<const char*>(start.data()), start.size()}, file->size(), path);
  return file;
}

void check_not_mistaken(std::string_view start, std::size_t size, const std::string& path) {
  if (is_git_lfs_pointer(start)) {
    const std::string_view stated = line_of(start.substr(0, 1024), "\nsize ");
    throw Error(
        fmt::format("{}: is a Git LFS pointer of {} bytes, expected the file{} itself; run git lfs pull in "
                    "its folder, or download the file itself",
                    path, size, is_digits(stated) ? fmt::format(" of {} bytes", stated) : ""));
  }
  if (is_web_page(start)) {
    throw Error(fmt::format(
        "{}: is a web page of {} bytes, saved instead of the file; download the file itself, as with its download "
        "button or hf download",
        path, size));
  }
  if (const std::string_view format = archive_format(start); !format.empty()) {
    throw Error(
        fmt::format("{}: is an archive ({}), expected the file itself; unpack it and name its content", path, format));
  }
}

std::string shown_text(std::span<const std::byte> start) {
  constexpr std::size_t longest = 60;
  const std::string_view all(reinterpret_cast<const char*>(start.data()), start.size());
  const std::string_view line = all.substr(0, std::min(longest, all.find_first_of("\r\n")));
  const bool is_text = !line.empty() && std::all_of(line.begin(), line.end(), [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
  });
  return is_text ? fmt::format(" and starts with {}", quote(line)) : "";
}

}  // namespace minimind
