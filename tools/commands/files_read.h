#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/options/options.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Returns every file that a conversion reads or may read: weights and the files next to them, LoRAs, config and
// tokenizer.
std::vector<std::string> files_read(const std::string& model, const CheckpointOptions& options,
                                    const Checkpoint& checkpoint, const std::optional<std::string>& tokenizer);

// Throws UsageError if the output file is one of them, under any name.
void check_not_read(const std::string& written, const std::vector<std::string>& read);

}  // namespace minimind
