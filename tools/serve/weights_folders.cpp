#include "tools/serve/weights_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace minimind {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> without_links(const fs::path& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? std::nullopt : std::optional(real.string());
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
