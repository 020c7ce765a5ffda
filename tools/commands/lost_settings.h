#pragma once

#include <vector>

#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Returns the settings that a .pth, which has only tensors, loses: each hyper-parameter with another value when the
// file is read without options, such as "num_experts_per_tok is 2, not 1". Returns the reason alone if the file could
// not be read at all. The end of text is omitted if a tokenizer defines it.
std::vector<Fact> lost_settings(const Checkpoint& checkpoint);

}  // namespace minimind
