#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/model/config.h"

namespace minimind {

// A file of weights as it is on disk: another one if it was written since.
struct WrittenFile {
  std::string path;
  std::int64_t nanoseconds = 0;  // the time of the last write, since 1970
  std::uintmax_t bytes = 0, inode = 0;
  bool operator==(const WrittenFile&) const = default;
};

// A file or Hugging Face folder whose name looks like a checkpoint's.
struct ListedCheckpoint {
  std::string path;
  std::int64_t written = 0;  // the time of the last write, in nanoseconds since 1970
  std::uintmax_t bytes = 0;  // of the weights
  bool is_lora = false;      // has only LoRA matrices
  bool is_model = false;     // can be read as a model without further options
  Family family{};           // of a model
  double parameters = 0;     // of a model
  std::string problem{};     // why it cannot be read as a model; empty for a model or a LoRA
  // written_files(path) from before it was opened: what is written meanwhile is seen the next time.
  std::vector<WrittenFile> files{};
};

// Returns the checkpoints directly in `folder`, newest first: .pth, .pt, .bin, .safetensors and .gguf files, and
// Hugging Face folders. Opens each one to find what it is, unless it is a model or a LoRA of `known`, an earlier
// result, and was not written since.
std::vector<ListedCheckpoint> list_checkpoints(const std::string& folder,
                                               const std::vector<ListedCheckpoint>& known = {});

// Returns the files of a checkpoint, or those directly in a folder and in its folders that look like checkpoints,
// sorted. Opens none. Equal results show that nothing was written, replaced, added or removed.
std::vector<WrittenFile> written_files(const std::string& path);

// Returns the folders in `folder` that have such files, sorted. In MiniMind's tree, out/ is such a folder.
std::vector<std::string> folders_with_checkpoints(const std::string& folder);

}  // namespace minimind
