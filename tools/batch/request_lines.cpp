#include "tools/batch/request_lines.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tools/options/lines.h"
#include "weights/base/error.h"
#include "weights/io/input_file.h"
#include "weights/io/text_file.h"

namespace minimind {

namespace fs = std::filesystem;

LineId RequestLine::id(std::optional<std::string> custom_id) const {
  return {number, custom_id ? std::move(*custom_id) : fmt::format("line-{}", number)};
}

RequestLines::RequestLines(std::string path, std::size_t first_line, std::size_t largest_pipe)
    : path_(std::move(path)), first_line_(first_line) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    written_ = status.st_mtime;
    file_.open(path_, std::ios::in | std::ios::binary);
    if (!file_) throw Error(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
  } else {
    copy_to_temporary_file(largest_pipe);
  }
  while (read_line()) ++size_;
  if (size_ == 0) throw Error(fmt::format("{}: is empty, expected a request per line", path_));
  line_.index = size_;
  go_to(0);
}

void RequestLines::copy_to_temporary_file(std::size_t largest) {
  const char* const folder = std::getenv("TMPDIR");
  std::string name = (fs::path(folder && *folder ? folder : "/tmp") / "minimind-batch-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) {
    throw Error(fmt::format("{}: cannot be created: {}; set TMPDIR to a folder for temporary files", name,
                            std::strerror(errno)));
  }
  ::close(descriptor);
  std::fstream copy(name, std::ios::in | std::ios::out | std::ios::binary);
  ::unlink(name.c_str());
  std::size_t size = 0, line = 0;
  read_pieces_or_pipe(path_, [&](std::string_view part) {
    size += part.size();
    const std::size_t end = part.rfind('\n');
    line = end == std::string_view::npos ? line + part.size() : part.size() - end - 1;
    check_line(line, path_);
    if (size > largest) {
      throw Error(fmt::format("{}: is a pipe of over {} bytes, expected at most that; name a file", path_, largest));
    }
    if (!copy.write(part.data(), static_cast<std::streamsize>(part.size()))) {
      throw Error(fmt::format("{}: cannot hold all of {}: {}", name, path_, std::strerror(errno)));
    }
  });
  if (!copy.flush()) throw Error(fmt::format("{}: cannot hold all of {}: {}", name, path_, std::strerror(errno)));
  file_ = std::move(copy);
  file_.seekg(0);
}

bool RequestLines::read_line() {
  do {
    if (!minimind::read_line(file_, line_.text, path_)) return false;
    ++line_.number;
  } while (is_empty_line(line_.text));
  return true;
}

std::optional<RequestLine> RequestLines::next() {
  if (line_.index == size_) return std::nullopt;
  if (!read_line()) throw Error(fmt::format("{}: had {} requests and lost some meanwhile", path_, size_));
  std::optional<RequestLine> line = line_;
  ++line_.index;
  return line;
}

void RequestLines::go_to(std::size_t index) {
  if (index < line_.index) {
    file_.clear();
    file_.seekg(0);
    line_ = {};
    line_.number = first_line_ - 1;
  }
  while (line_.index < index && next()) continue;
}

}  // namespace minimind
