#include "weights/checkpoint/surroundings.h"

#include <system_error>

#include "weights/io/text_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// The folder above `folder` by name. If `folder` is a link, `folder`/.. is another folder.
fs::path named_parent(const fs::path& folder) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.parent_path();
}

}  // namespace

std::vector<Surroundings> surroundings(const std::string& checkpoint_path) {
  const fs::path path(checkpoint_path);
  std::error_code failed;
  const fs::path target = fs::canonical(path, failed);
  std::vector<Surroundings> places;
  for (const fs::path& checkpoint : {path, target}) {
    if (checkpoint.empty()) continue;  // the file does not exist
    const fs::path folder = is_folder(checkpoint_path) ? checkpoint : checkpoint.parent_path();
    places.push_back({folder, {folder / ".." / "model", named_parent(folder) / "model", folder / "model"}});
  }
  return places;
}

std::string shorter(const fs::path& path) {
  std::error_code failed;
  const fs::path normal = path.lexically_normal();
  return fs::equivalent(normal, path, failed) ? normal.string() : path.string();
}

}  // namespace minimind
