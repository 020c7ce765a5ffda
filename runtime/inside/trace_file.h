#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/inside/recording.h"
#include "weights/io/input_file.h"
#include "weights/io/output_file.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A trace is a .safetensors file with one f32 tensor for each point that has values, by the name that MiniMind's own
// code has for it, and this metadata, all texts:
//   tokens   the ids, "1,320,402"
//   model    the name of the checkpoint
//   sha256   that of its weights, as weights_sha256() has it
//   family   its generation
//   axes     JSON: for each tensor what its dimensions count, {"lm_head": ["tokens", "vocabulary"]}
// In a trace from elsewhere only `tokens` is required.
struct Trace {
  std::string path;
  std::vector<std::int32_t> tokens;
  std::string model, sha256;                       // or empty
  StoredTensors tensors{};                         // under the names of points
  std::map<std::string, std::string> own_names{};  // the file's name of each
};

// Writes a recording of these tokens, with `model` in UTF-8. The caller must still commit the file.
void write_trace(OutputFile& file, const Recording& recording, const Config& config, const std::string& model,
                 const std::string& sha256, const std::vector<std::int32_t>& tokens);

// Opens a trace. Throws Error if it is not one, names a point twice or has values that are not f32, f16 or bf16.
Trace read_trace(std::shared_ptr<const InputFile> file);

}  // namespace minimind
