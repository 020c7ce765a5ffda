#include "weights/checkpoint/list_checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/gguf/reader.h"
#include "weights/huggingface/folder.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/input_file.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

bool has_suffix_of_a_model(const fs::path& path) {
  const std::string suffix = lower_case(path.extension().string());
  for (const char* known : {".pth", ".pt", ".bin", ".safetensors", ".gguf"}) {
    if (suffix == known) return true;
  }
  return false;
}

// The files in a folder that may be checkpoints, or the file itself.
std::vector<fs::path> weight_files(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.is_regular_file(ignored) && has_suffix_of_a_model(entry.path())) files.push_back(entry.path());
  }
  return files;
}

// The file as it is now; std::nullopt if it is gone.
std::optional<WrittenFile> written_file(const fs::path& file) {
  struct stat status {};
  if (::stat(file.string().c_str(), &status) != 0) return std::nullopt;
  const auto seconds = static_cast<std::int64_t>(status.st_mtim.tv_sec);
  return WrittenFile{file.generic_string(), seconds * 1'000'000'000 + status.st_mtim.tv_nsec,
                     static_cast<std::uintmax_t>(status.st_size), status.st_ino};
}

// Other programs have files of these suffixes, too.
bool starts_as_checkpoint(const fs::path& path) {
  try {
    const auto file = open_input(path.generic_string());
    return looks_like_gguf(file->start()) || looks_like_pth(file->start()) || looks_like_safetensors(file->start());
  } catch (const Error&) {
    return false;
  }
}

bool is_lora(const std::string& path) {
  try {
    const StoredTensors tensors = read_pth(open_input(path));
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const auto& entry) { return entry.first.find(".lora.") != std::string::npos; });
  } catch (const Error&) {
    return false;
  }
}

void describe_model(ListedCheckpoint& found) {
  try {
    const Checkpoint checkpoint = open_checkpoint(found.path, {});
    found.parameters = static_cast<double>(parameter_count(checkpoint));
    found.family = checkpoint.config.family;
    found.is_model = true;
  } catch (const Error& error) {
    found.problem = error.what();
  }
}

ListedCheckpoint listed(const fs::path& path, const std::vector<ListedCheckpoint>& known) {
  ListedCheckpoint found{.path = path.generic_string(), .files = written_files(path.generic_string())};
  const auto same = std::ranges::find(known, found.files, &ListedCheckpoint::files);
  if (same != known.end() && same->path == found.path && same->problem.empty()) return *same;
  for (const fs::path& file : weight_files(path)) {
    const auto written = written_file(file);
    if (!written) continue;
    found.written = std::max(found.written, written->nanoseconds);
    found.bytes += written->bytes;
  }
  std::error_code ignored;
  found.is_lora = !fs::is_directory(path, ignored) && is_lora(found.path);
  if (!found.is_lora) describe_model(found);
  return found;
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(const std::string& folder, const std::vector<ListedCheckpoint>& known) {
  std::vector<ListedCheckpoint> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool is_file = entry.is_regular_file(ignored) && has_suffix_of_a_model(entry.path());
    const bool is_model_folder = entry.is_directory(ignored) && is_hf_folder(entry.path().generic_string());
    if (is_file || is_model_folder) found.push_back(listed(entry.path(), known));
  }
  std::sort(found.begin(), found.end(), [](const ListedCheckpoint& a, const ListedCheckpoint& b) {
    return std::tie(b.written, a.path) < std::tie(a.written, b.path);
  });
  return found;
}

std::vector<WrittenFile> written_files(const std::string& path) {
  std::vector<fs::path> files = weight_files(path);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    for (fs::path& file : weight_files(entry.path())) files.push_back(std::move(file));
  }
  std::vector<WrittenFile> written;
  for (const fs::path& file : files) {
    if (auto one = written_file(file)) written.push_back(std::move(*one));
  }
  std::ranges::sort(written, {}, &WrittenFile::path);
  return written;
}

std::vector<std::string> folders_with_checkpoints(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    const std::vector<fs::path> files = weight_files(entry.path());
    if (std::any_of(files.begin(), files.end(), starts_as_checkpoint)) found.push_back(entry.path().generic_string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace minimind
