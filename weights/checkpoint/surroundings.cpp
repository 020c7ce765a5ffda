#include "weights/checkpoint/surroundings.h"

#include <algorithm>
#include <string_view>

#include "weights/io/path.h"

namespace minimind {
namespace {

// The path without ".", ".." and empty names, as if no folder in it were a link.
std::string normal_path(std::string_view path) {
  const bool is_absolute = path.starts_with('/');
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    const bool is_up = name == "..";
    if (is_up && !names.empty() && names.back() != "..") {
      names.pop_back();
    } else if (!name.empty() && name != "." && !(is_up && is_absolute)) {
      names.push_back(name);
    }
  }
  std::string normal(is_absolute ? "/" : "");
  for (const std::string_view name : names) normal = join_path(normal, name);
  return normal;
}

// The folder above `folder` by name. If `folder` is a link, `folder`/.. is another folder.
std::string named_parent(const std::string& folder) {
  const bool is_relative = !folder.empty() && !folder.starts_with('/');
  return parent_path(normal_path(is_relative ? join_path(real_path("."), folder) : folder));
}

}  // namespace

std::vector<Surroundings> surroundings(const std::string& checkpoint_path) {
  std::vector<Surroundings> places;
  for (const std::string& checkpoint : {checkpoint_path, real_path(checkpoint_path)}) {
    if (checkpoint.empty()) continue;  // the file does not exist
    const std::string folder = is_folder(checkpoint_path) ? checkpoint : parent_path(checkpoint);
    places.push_back(
        {folder,
         {join_path(folder, "../model"), join_path(named_parent(folder), "model"), join_path(folder, "model")}});
  }
  return places;
}

std::string shorter(const std::string& path) {
  const std::string normal = normal_path(path);
  return is_same_file(normal, path) ? normal : path;
}

}  // namespace minimind
