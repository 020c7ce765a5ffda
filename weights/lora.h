#pragma once

#include <string>
#include <vector>

#include "weights/tensor_file.h"

namespace minimind {

struct LoraFile {
  std::string path;
  double scale = 1;  // W + scale * B A; MiniMind trains and runs with 1
};

// "a.pth" or "a.pth:0.5". Throws UsageError when what follows a last colon, with no / behind it, is no finite
// number; a file whose own name has a colon is given with its scale, as in my:lora.pth:1.
LoraFile parse_lora_argument(const std::string& argument);

// Adds a MiniMind LoRA, `<module>.lora.A.weight` [r, in] and `<module>.lora.B.weight` [out, r], to the weights of the
// modules it names. Returns their names. A changed weight is held as f32, whatever it was stored as, so that nothing is
// lost: PyTorch, too, adds the two products in f32.
// Throws Error for a file that holds anything else, for half a pair, and for modules or shapes the model lacks.
std::vector<std::string> add_lora(StoredTensors& tensors, const LoraFile& lora);

}  // namespace minimind
