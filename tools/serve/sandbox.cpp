#include "tools/serve/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "weights/io/path.h"

// Android ends a program that asks for it.
#if __has_include(<linux/landlock.h>) && defined(SYS_landlock_create_ruleset) && !defined(MINIMIND_WITHOUT_LANDLOCK)
#include <linux/landlock.h>
#define MINIMIND_HAS_LANDLOCK 1
#endif

namespace minimind {
namespace {

#ifdef MINIMIND_HAS_LANDLOCK

// As in the kernel's interface, whose header may be older than the kernel.
struct Ruleset {
  std::uint64_t files = 0, network = 0, scopes = 0;
};
constexpr std::uint64_t connect_tcp = 2, abstract_sockets_and_signals = 3;

constexpr std::uint64_t read_file = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t read_folder = read_file | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t socket_rights = LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;

// All rights that a version of the interface knows: what no rule then allows is forbidden. Versions add linking between
// folders (2), truncating (3), connections (4), control of devices (5) and scopes (6).
Ruleset everything(long version) {
  const int known = version < 2 ? 13 : version < 3 ? 14 : version < 5 ? 15 : 16;
  Ruleset rules{.files = (std::uint64_t{1} << known) - 1};
  if (version >= 4) rules.network = connect_tcp;
  if (version >= 6) rules.scopes = abstract_sockets_and_signals;
  return rules;
}

std::size_t size_of(long version) {
  return sizeof(std::uint64_t) * (version < 4 ? 1 : version < 6 ? 2 : 3);
}

void allow(int ruleset, const std::string& path, std::uint64_t folder_rights, std::uint64_t file_rights) {
  const int descriptor = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  landlock_path_beneath_attr rule{};
  rule.parent_fd = descriptor;
  if (::fstat(descriptor, &status) == 0) rule.allowed_access = S_ISDIR(status.st_mode) ? folder_rights : file_rights;
  if (rule.allowed_access != 0) ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  ::close(descriptor);
}

// Returns the reason if it fails, else an empty text.
std::string confine(const Sandbox& sandbox) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return std::string("the system has no Landlock: ") + std::strerror(errno);
  const Ruleset rules = everything(version);
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size_of(version), 0));
  if (ruleset < 0) return std::string("Landlock has failed: ") + std::strerror(errno);
  for (const std::string& path : sandbox.readable) allow(ruleset, path, read_folder, read_file);
  for (const std::string& folder : sandbox.socket_folders) allow(ruleset, folder, socket_rights, 0);
  const bool confined = ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  const int error = errno;
  ::close(ruleset);
  return confined ? "" : std::string("Landlock has failed: ") + std::strerror(error);
}

#else

std::string confine(const Sandbox&) {
  return "the program was built without Landlock";
}

#endif

namespace fs = std::filesystem;

std::optional<std::string> without_links(const fs::path& path) {
  const std::string real = real_path(path.string());
  return real.empty() ? std::nullopt : std::optional(real);
}

std::string with_slash(std::string folder) {
  if (!folder.ends_with('/')) folder += '/';
  return folder;
}

// The files that are read with the checkpoint, as far as they are links.
std::vector<std::string> links_of(const fs::path& checkpoint) {
  std::error_code failed;
  std::vector<std::string> links;
  const auto add = [&](const fs::path& path) {
    if (fs::is_symlink(fs::symlink_status(path, failed))) links.push_back(path.string());
  };
  if (fs::is_directory(checkpoint, failed)) {
    for (fs::directory_iterator entry(checkpoint, failed), end; !failed && entry != end; entry.increment(failed)) {
      add(entry->path());
    }
  } else {
    for (const char* const name : {"config.json", "generation_config.json"}) add(checkpoint.parent_path() / name);
  }
  return links;
}

}  // namespace

SandboxState enter_sandbox(const Sandbox& sandbox) {
  SandboxState state;
  state.no_new_rights = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  state.reason = state.no_new_rights ? confine(sandbox) : "the system does not let it give up rights";
  state.confined = state.reason.empty();
  return state;
}

WeightsFolders::WeightsFolders(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (auto real = without_links(folder)) folders_.push_back(with_slash(std::move(*real)));
  }
}

bool WeightsFolders::leads_inside(const std::string& path) const {
  const auto real = without_links(path);
  return real && std::ranges::any_of(folders_,
                                     [&](const std::string& folder) { return with_slash(*real).starts_with(folder); });
}

std::optional<std::string> WeightsFolders::resolve(const std::string& path) const {
  if (path.find('\0') != std::string::npos) return std::nullopt;
  std::error_code failed;
  // Of x/.. it must not matter whether x exists.
  const fs::path named = fs::absolute(path, failed).lexically_normal();
  if (failed || !leads_inside(named.string())) return std::nullopt;
  const std::string real = without_links(named).value_or("");
  const bool holds = leads_inside(real) && std::ranges::all_of(links_of(real), [this](const std::string& link) {
                       return leads_inside(link);
                     });
  return holds ? std::optional(real) : std::nullopt;
}

}  // namespace minimind
