#include "weights/io/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/output_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

std::string lock_path_of(const fs::path& path) {
  return (path.parent_path() / fmt::format(".{}.lock", path.filename().string())).string();
}

bool is_file_at(int descriptor, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

// As the user typed it, shortened; empty if the system does not provide it.
std::string command_of(const std::string& process) {
  constexpr std::size_t longest = 80;
  std::ifstream file("/proc/" + process + "/cmdline", std::ios::binary);
  std::string command{std::istreambuf_iterator<char>(file), {}};
  std::replace(command.begin(), command.end(), '\0', ' ');
  command = command.substr(0, command.find_last_not_of(' ') + 1);
  return command.size() > longest ? command.substr(0, longest) + "..." : command;
}

// Returns the holder that the lock file names: the first word is a process, the second its machine.
std::string holder_in(const std::string& lock_path) {
  std::string process, host;
  try {
    std::istringstream words(read_text_file(lock_path, 4096));
    words >> process >> host;
  } catch (const Error&) {
    // It was removed or replaced meanwhile.
  }
  if (!is_digits(process)) return "another process";
  if (host != machine_name()) return fmt::format("process {} on {}", process, quote(host));
  if (process == std::to_string(::getpid())) return "this process";
  const std::string command = command_of(process);
  return command.empty() ? fmt::format("process {}", process) : fmt::format("process {} ({})", process, quote(command));
}

}  // namespace

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

FileLock::FileLock(std::string path) : path_(std::move(path)), lock_path_(lock_path_of(output_target(path_))) {
  while (!take()) continue;
  unfinished_.emplace(lock_path_);
  // The name is for the message of others. Where the disk is full, they learn only that there is a holder.
  const std::string holder = fmt::format("{} {}\n", ::getpid(), machine_name());
  if (::ftruncate(descriptor_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, holder.data(), holder.size(), 0);
}

FileLock::~FileLock() {
  if (is_file_at(descriptor_, lock_path_)) ::unlink(lock_path_.c_str());
  ::close(descriptor_);
}

// Returns false if the holder removed the lock file meanwhile.
bool FileLock::take() {
  descriptor_ = ::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (descriptor_ < 0 && errno == EINTR) return false;
  if (descriptor_ < 0) fail(errno);
  const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  if (locked && is_file_at(descriptor_, lock_path_)) return true;
  ::close(descriptor_);
  if (locked || error == EINTR) return false;
  if (error == EWOULDBLOCK) fail_held();
  fail(error);
}

void FileLock::fail_held() const {
  throw Error(
      fmt::format("{}: is in use by {}; wait until that ends, or name another file", path_, holder_in(lock_path_)));
}

void FileLock::fail(int error) const {
  throw Error(fmt::format("{}: cannot be locked: {}: {}; choose a folder that you may write to", path_, lock_path_,
                          std::strerror(error)));
}

}  // namespace minimind
