#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/checkpoint/checkpoint.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// The limit on ranks: W + B A takes rank x out x in products. Real LoRAs are far below it.
inline constexpr std::size_t largest_rank = 1024;

struct LoraFile {
  std::string path;
  double scale = 1;  // W + scale * B A; MiniMind trains and runs with 1
};

// Parses "a.pth" or "a.pth:0.5". The scale follows the last colon, unless a / follows that colon. Throws UsageError if
// the scale is not a finite number. A file name with a colon needs an explicit scale, as in my:lora.pth:1.
LoraFile parse_lora_argument(const std::string& argument);

// Adds a MiniMind LoRA to the weights of its modules: `<module>.lora.A.weight` [r, in] and `<module>.lora.B.weight`
// [out, r]. Module names are those of `tensors`. A changed weight is kept as f32, regardless of its stored type,
// because PyTorch adds the two products in f32. Modules of experts are omitted if the model is dense, as in MiniMind's
// load_lora.
// Throws Error, naming lora.path, for half a pair and for values that are not finite or make a weight so. Modules or
// shapes that the model lacks also throw Error.
LoraMerge merge_lora(StoredTensors& tensors, const StoredTensors& pairs, const LoraFile& lora);

// Reads a .pth and merges its LoRA; a whole model in the same file is not used. Throws Error if the file has no LoRA,
// or has tensors of neither kind.
LoraMerge add_lora(StoredTensors& tensors, const LoraFile& lora);

}  // namespace minimind
