#include "weights/io/path.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace minimind {
namespace {

constexpr const char* separators = std::filesystem::path::preferred_separator == '\\' ? "/\\" : "/";

std::string provided_path;
std::span<const std::byte> provided_bytes;

// What the system says of a file or of what a link leads to; 0 if it does not exist.
mode_t mode_of(const std::string& path) {
  if (!provided_file(path).empty()) return S_IFREG;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode : 0;
}

}  // namespace

void provide_file(const std::string& path, std::span<const std::byte> bytes) {
  provided_path = path;
  provided_bytes = bytes;
}

std::span<const std::byte> provided_file(const std::string& path) {
  return path == provided_path ? provided_bytes : std::span<const std::byte>();
}

bool is_folder(const std::string& path) {
  return S_ISDIR(mode_of(path));
}

bool is_there(const std::string& path) {
  return mode_of(path) != 0;
}

bool is_regular_file(const std::string& path) {
  return S_ISREG(mode_of(path));
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.find_last_of(separators) != path.size() - 1) path += '/';
  return path.append(name);
}

std::string parent_path(std::string_view path) {
  const std::size_t slash = path.find_last_of(separators);
  if (slash == std::string_view::npos) return "";
  const std::size_t last = path.find_last_not_of(separators, slash);
  return std::string(path.substr(0, last == std::string_view::npos ? 1 : last + 1));
}

std::string_view path_extension(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of(separators) + 1);  // all of it if there is none
  const std::size_t dot = name.find_last_of('.');
  return dot == std::string_view::npos || dot == 0 || name == ".." ? std::string_view() : name.substr(dot);
}

std::string real_path(const std::string& path) {
  char* const found = ::realpath(path.c_str(), nullptr);
  const std::string real(found ? found : "");
  std::free(found);
  return real;
}

std::string advice_on_home(const std::string& path) {
  if (!path.starts_with('~')) return "";
  const std::size_t slash = path.find('/');
  if (slash == 1) return fmt::format("; the shell did not replace ~: type \"$HOME{}\"", path.substr(1));
  return fmt::format("; the shell did not replace {}: type that home folder in full", path.substr(0, slash));
}

}  // namespace minimind
