#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace minimind {

// A file or Hugging Face folder that looks like a checkpoint, by its name.
struct ListedCheckpoint {
  std::string path;
  std::int64_t written = 0;   // when it was written last, in seconds since 1970
  std::uintmax_t bytes = 0;   // of the weights
  bool is_lora = false;       // holds LoRA matrices alone
  bool is_model = false;      // can be read as a model without further options
  std::string description{};  // "v3, 63.91 M parameters", "LoRA", or that it cannot be read as a model
};

// What `folder` itself holds, newest first: .pth, .pt, .bin, .safetensors and .gguf files, and Hugging Face folders.
// Every one is opened to see what it is.
std::vector<ListedCheckpoint> list_checkpoints(const std::string& folder);

// The folders in `folder` that hold such files, as MiniMind's tree has out/; sorted.
std::vector<std::string> folders_with_checkpoints(const std::string& folder);

}  // namespace minimind
