#include "tools/batch/result_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "tools/batch/batch_lines.h"
#include "tools/options/lines.h"
#include "weights/base/error.h"
#include "weights/io/output_file.h"

namespace minimind {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

// The whole lines of a file, read one by one.
class Lines {
 public:
  explicit Lines(const LineFile& file) : path_(file.path()) {
    if (file.exists()) file_.open(path_, std::ios::binary);
    read_line();
  }

  // The request of the line; std::nullopt after the last whole one.
  const std::optional<LineId>& id() const { return id_; }
  std::size_t number() const { return number_; }
  std::uint64_t offset() const { return at_; }

  void advance() {
    at_ = end_;
    read_line();
  }

  // Whether the file has only one line, which no batch began to write. After a power loss there may be zeros. Answers
  // of other programs, such as those of this server, begin with an id, too.
  bool is_foreign() const {
    static const std::string begin = fmt::format(R"({{"id": "{})", batch_id_prefix);
    const std::string_view start = std::string_view(line_).substr(0, begin.size());
    return at_ == 0 && !id_ && !start.empty() && start.front() != '\0' && !begin.starts_with(start);
  }

 private:
  void read_line() {
    id_.reset();
    if (!minimind::read_line(file_, line_, path_) || file_.eof()) return;  // without a line feed it is not whole
    end_ = at_ + line_.size() + 1;
    ++number_;
    id_ = request_of(line_);
    if (!id_ && file_.peek() != std::ifstream::traits_type::eof()) {
      throw Error(fmt::format("{}: line {} is not a line of a batch's results; choose another file", path_, number_));
    }
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t at_ = 0;   // of the line
  std::uint64_t end_ = 0;  // of the line
  std::size_t number_ = 0;
  std::optional<LineId> id_;
  std::string line_;  // the last one read, whole or not
};

void require_end(const Lines& lines, const std::string& path, std::size_t requests) {
  if (!lines.id()) return;
  throw Error(
      fmt::format("{}: line {} is of request {}, which is not the next one of the {} in the input; choose another "
                  "file, or remove this one to start over",
                  path, lines.number(), quote(lines.id()->custom_id), requests));
}

}  // namespace

LineFile::LineFile(std::string path) : path_(std::move(path)) {
  open(0);
}

LineFile::~LineFile() {
  if (exists()) ::close(descriptor_);
}

void LineFile::open(int flags) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666);
  if (!exists() && (errno != ENOENT || flags != 0)) fail(path_, errno);
  struct stat status {};
  if (exists() && (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))) {
    ::close(descriptor_);
    throw Error(fmt::format("{}: is not a file, expected one, or none yet", path_));
  }
}

void LineFile::create() {
  if (!exists()) open(O_CREAT);
}

void LineFile::truncate(std::uint64_t size) {
  if (exists() && ::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail(path_, errno);
  size_ = size;
}

void LineFile::append(std::string_view line) {
  create();
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t bytes =
        ::pwrite(descriptor_, line.data() + written, line.size() - written, static_cast<off_t>(size_ + written));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      const int error = bytes < 0 ? errno : ENOSPC;
      [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
      throw Error(
          fmt::format("{}: cannot be written: {}; its lines are whole, and the same command continues after them",
                      path_, std::strerror(error)));
    }
    written += static_cast<std::size_t>(bytes);
  }
  size_ += line.size();
}

void LineFile::sync() {
  if (exists() && ::fdatasync(descriptor_) != 0 && errno != EINVAL) fail(path_, errno);
}

ResultFiles::ResultFiles(const std::string& results_path, const std::string& errors_path, RequestLines& requests)
    : results_lock_(results_path), errors_lock_(errors_path), results_(results_path), errors_file_(errors_path) {
  // A file that cannot be written is reported before the first text.
  results_.create();
  if (!errors_file_.exists()) const OutputFile probe(errors_path);
  keep_lines_of(requests);
}

void ResultFiles::keep_lines_of(RequestLines& requests) {
  Lines results(results_), errors(errors_file_);
  std::uint64_t results_size = 0, errors_size = 0;
  bool gap = false;
  while (results.id() || errors.id()) {
    const std::optional<RequestLine> request = requests.next();
    if (!request) break;
    const LineId id = request->id();
    Lines* const lines = results.id() == id ? &results : errors.id() == id ? &errors : nullptr;
    // Of the two files, a power loss may have taken a line of one and left later ones of the other.
    gap = gap || !lines;
    if (!lines) continue;
    const bool is_error = lines == &errors;
    lines->advance();
    if (gap) continue;
    ++done_;
    errors_ += is_error;
    results_size = results.offset();
    errors_size = errors.offset();
  }
  for (const auto& [lines, file] : {std::pair(&results, &results_), std::pair(&errors, &errors_file_)}) {
    if (done_ > 0 || !lines->is_foreign()) continue;
    throw Error(fmt::format("{}: is not of a batch's results; choose another file", file->path()));
  }
  require_end(results, results_.path(), requests.size());
  require_end(errors, errors_file_.path(), requests.size());
  results_.truncate(results_size);
  errors_file_.truncate(errors_size);
  requests.go_to(done_);
}

void ResultFiles::append(std::string_view line, bool is_error) {
  (is_error ? errors_file_ : results_).append(line);
  ++done_;
  errors_ += is_error;
}

void ResultFiles::sync() {
  results_.sync();
  errors_file_.sync();
}

}  // namespace minimind
