#include "tools/chat/input_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/text/utf8.h"
#include "tools/options/lines.h"
#include "weights/base/error.h"
#include "weights/io/output_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

std::string escaped(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line + '\n';
}

std::string unescaped(std::string_view line) {
  std::string entry;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool escape = line[at] == '\\' && at + 1 < line.size();
    if (escape) ++at;
    entry += escape && line[at] == 'n' ? '\n' : line[at];
  }
  return entry;
}

// Appends to a regular file in one call, so that simultaneous conversations do not mix their lines, and creates missing
// folders. Never blocks, not even on a pipe.
void append_line(const fs::path& path, const std::string& line) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const int file =
      open(path.string().c_str(), O_APPEND | O_CREAT | O_WRONLY | O_CLOEXEC | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (file < 0) return;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  }
  close(file);
}

// The old lines stay if the new ones cannot be written.
void replace_lines(const std::string& path, const std::string& lines) {
  try {
    OutputFile file(path, {}, OutputFile::Readers::owner);
    file.write(std::as_bytes(std::span(lines)));
    file.commit();
  } catch (const Error&) {
  }
}

}  // namespace

std::string history_path() {
  const auto folder = [](const char* name) {
    const char* const value = std::getenv(name);
    const fs::path path(value ? value : "");
    return path.is_absolute() ? path : fs::path();
  };
  if (const fs::path state = folder("XDG_STATE_HOME"); !state.empty()) return (state / "minimind" / "history").string();
  if (const fs::path home = folder("HOME"); !home.empty())
    return (home / ".local" / "state" / "minimind" / "history").string();
  return "";
}

InputHistory::InputHistory(std::string path) : path_(std::move(path)) {
  std::error_code failed;
  if (path_.empty() || !fs::is_regular_file(path_, failed)) return;
  std::string text;
  try {
    text = read_text_file(path_);
  } catch (const Error&) {
    return;
  }
  std::size_t lines = 0;
  for_each_line(text, [&](const std::string& line, std::size_t) {
    ++lines;
    if (line.size() <= longest_entry && is_utf8(line)) entries_.push_back(unescaped(line));
  });
  if (entries_.size() > most_entries) entries_.erase(entries_.begin(), entries_.end() - most_entries);
  if (lines <= 2 * most_entries) return;
  std::string kept;
  for (const std::string& entry : entries_) kept += escaped(entry);
  replace_lines(path_, kept);
}

void InputHistory::add(const std::string& entry) {
  if (entry.empty() || entry.size() > longest_entry || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (!path_.empty()) append_line(path_, escaped(entry));
}

}  // namespace minimind
