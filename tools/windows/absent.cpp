// The kernels of matrices in tiles, which GCC does not compile for this system, and which all_instruction_sets.cpp
// chooses on Linux alone.

#include "runtime/kernels/blocks.h"

namespace minimind::kernels {

const AmxProducts amxint8{};
const Bf16Products amxbf16{};

}  // namespace minimind::kernels
