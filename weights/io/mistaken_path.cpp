#include "weights/io/mistaken_path.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

bool is_name_part(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
         });
}

// OWNER/NAME, unless it is the path of a file, or OWNER is a folder in the current folder.
bool is_hub_name(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos || !is_name_part(path.substr(0, slash)) || !is_name_part(path.substr(slash + 1))) {
    return false;
  }
  const std::string suffix = lower_case(path_extension(path));
  for (const char* file : {".pth", ".pt", ".bin", ".safetensors", ".gguf", ".json"}) {
    if (suffix == file) return false;
  }
  return !is_there(path.substr(0, slash));
}

std::string advice_on_download(const std::string& name) {
  const std::string folder = name.substr(name.find('/') + 1);
  return fmt::format(
      "; nothing is downloaded here: for a model on Hugging Face, run hf download {0} --local-dir {1}, on ModelScope "
      "modelscope download --model {0} --local_dir {1}, then name the folder {1}",
      name, folder);
}

std::string advice_on(const std::string& path) {
  if (const std::string advice = advice_on_home(path); !advice.empty()) return advice;
  for (const char* scheme : {"http://", "https://", "hf://", "file://"}) {
    if (lower_case(path).starts_with(scheme)) {
      return "; an address is not opened: download the file or folder and name it by its path";
    }
  }
  return is_hub_name(path) ? advice_on_download(path) : "";
}

}  // namespace

void check_path(const std::string& path) {
  for (const char* suffix : {".crdownload", ".part", ".partial", ".download", ".incomplete", ".aria2", ".!ut"}) {
    if (path_extension(path) != suffix) continue;
    throw Error(fmt::format("{}: is an unfinished download by its suffix {}; let the download end, or start it again",
                            path, suffix));
  }
  struct stat status {};
  // If its status is unavailable for another reason, opening it reports why.
  if (!provided_file(path).empty() || ::stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR))
    return;
  const bool is_link = ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  const char* const reason = is_link ? "it is a link to a file that does not exist" : std::strerror(ENOENT);
  throw Error(fmt::format("{}: cannot be opened: {}{}", path, reason, advice_on(path)));
}

}  // namespace minimind
