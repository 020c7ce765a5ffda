#pragma once

#include <string>
#include <vector>

#include "weights/tensor/stored_tensor.h"

namespace minimind {

struct LoraFile {
  std::string path;
  double scale = 1;  // W + scale * B A; MiniMind trains and runs with 1
};

// "a.pth" or "a.pth:0.5". Throws UsageError when what follows a last colon, with no / after it, is not a finite
// number; a file whose own name has a colon is given with its scale, as in my:lora.pth:1.
LoraFile parse_lora_argument(const std::string& argument);

// What one LoRA did to a model.
struct LoraMerge {
  std::string path = {};
  std::vector<std::string> changed = {};  // names of the weights it was added to, which are kept as f32
  std::size_t smallest_rank = 0;
  std::size_t largest_rank = 0;
  std::vector<std::string> without_experts = {};  // modules of experts that were omitted, since the model is dense
  std::size_t base_tensors = 0;  // of the whole model that the LoRA's file holds, too; they are not used
};

// Moves what is called <module>.lora.A.weight or <module>.lora.B.weight out of `stored`: train_lora.py's checkpoints
// hold these next to the weights they are to be added to.
StoredTensors take_lora(StoredTensors& stored);

// Adds a MiniMind LoRA, `<module>.lora.A.weight` [r, in] and `<module>.lora.B.weight` [out, r], to the weights of the
// modules it names, under the names `tensors` have. A changed weight is kept as f32, regardless of its stored type, so
// that nothing is lost: PyTorch, too, adds the two products in f32. Modules of experts are omitted if the model is
// dense, as MiniMind's load_lora leaves them out.
// Throws Error, naming lora.path, for half a pair, for values that are not finite or make a weight so, and for other
// modules or shapes the model lacks.
LoraMerge merge_lora(StoredTensors& tensors, const StoredTensors& pairs, const LoraFile& lora);

// Reads a .pth and merges its LoRA; a whole model next to it is not used. Throws Error for a file without a LoRA, too,
// and for one that holds anything else.
LoraMerge add_lora(StoredTensors& tensors, const LoraFile& lora);

}  // namespace minimind
