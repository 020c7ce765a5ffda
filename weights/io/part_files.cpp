#include "weights/io/part_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "weights/base/text.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// File names may have 255 bytes.
std::string part_prefix(const fs::path& path) {
  return fmt::format(".{}.", path.filename().string().substr(0, 200));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Returns the process in a name of exactly the form PREFIX PID-N.part.
std::optional<pid_t> process_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const auto process = take_number<long>(name);
  if (!process || *process <= 0 || *process != static_cast<pid_t>(*process)) return std::nullopt;
  if (!name.starts_with('-')) return std::nullopt;
  name.remove_prefix(1);
  return take_number<unsigned long>(name) && name == ".part" ? std::optional(static_cast<pid_t>(*process))
                                                             : std::nullopt;
}

// Returns the start of a process in seconds of the wall clock; std::nullopt if unavailable. man 5 proc: field 22 of
// /proc/PID/stat, in ticks since boot. The name in field 2 may have spaces and brackets.
std::optional<double> start_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(line.substr(std::min(line.rfind(')'), line.size() - 1) + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  std::string_view text = field;
  const auto ticks = fields ? take_number<unsigned long>(text) : std::nullopt;
  timespec now{}, booted{};
  if (!ticks || ::clock_gettime(CLOCK_REALTIME, &now) != 0 || ::clock_gettime(CLOCK_BOOTTIME, &booted) != 0) {
    return std::nullopt;
  }
  return static_cast<double>(now.tv_sec - booted.tv_sec) +
         static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Returns true if this process may have written at that time, false if it started later under a reused number.
bool ran_at(pid_t process, std::time_t time) {
  if (::kill(process, 0) != 0 && errno == ESRCH) return false;
  constexpr double clocks_differ = 2;
  const auto start = start_of(process);
  return !start || *start <= static_cast<double>(time) + clocks_differ;
}

void remove_if_stale(const std::string& path, pid_t process) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  // In containers many programs have the same number, one after the other. A part of this one is locked.
  const bool stale = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
                     (process == ::getpid() || !ran_at(process, status.st_mtime)) &&
                     ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (stale) ::unlink(path.c_str());
  ::close(descriptor);
}

// Fixed places, because a handler of signals can neither lock nor use the heap. A path that does not fit, or has no
// place, is left as if the process had been killed.
struct Slot {
  enum State { free, taken, known };
  std::atomic<State> state{free};
  char path[1024];
};
static_assert(std::atomic<Slot::State>::is_always_lock_free);

std::array<Slot, 32> slots;

std::size_t take_slot(const std::string& path) {
  if (path.size() >= sizeof(Slot::path)) return slots.size();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Slot::State expected = Slot::free;
    if (!slots[i].state.compare_exchange_strong(expected, Slot::taken)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = Slot::known;
    return i;
  }
  return slots.size();
}

}  // namespace

std::string part_path(const std::string& path) {
  static std::atomic<unsigned> count{0};
  const fs::path target(path);
  return (target.parent_path() / fmt::format("{}{}-{}.part", part_prefix(target), ::getpid(), count++)).string();
}

bool lock_part(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat status {};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

void remove_stale_parts(const std::string& path) {
  const std::string prefix = part_prefix(path);
  std::error_code failed;
  for (fs::directory_iterator entry(folder_of(path), failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (const auto process = process_of(name, prefix)) remove_if_stale(entry->path().string(), *process);
  }
}

Unfinished::Unfinished(const std::string& path) : slot_(take_slot(path)) {}

Unfinished::~Unfinished() {
  if (slot_ < slots.size()) slots[slot_].state = Slot::free;
}

void remove_unfinished() noexcept {
  for (int (*const remove)(const char*) : {::unlink, ::rmdir}) {
    for (const Slot& slot : slots) {
      if (slot.state == Slot::known) remove(slot.path);
    }
  }
}

}  // namespace minimind
