#pragma once

#include <string>
#include <vector>

#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// What is lost when a checkpoint is written as a .pth, which has tensors and nothing else: each hyper-parameter that
// would be taken for something else when the file is read without options, as "num_experts_per_tok is 2, not 1". One
// sentence that says why, when it could not be read at all. The end of text is left out where a tokenizer tells it.
std::vector<std::string> lost_settings(const Checkpoint& checkpoint);

}  // namespace minimind
