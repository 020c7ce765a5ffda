#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/options/options.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Every file that the work reads, or may read: the weights and what belongs to them, LoRAs, config and tokenizer.
std::vector<std::string> files_read(const std::string& model, const CheckpointOptions& options,
                                    const Checkpoint& checkpoint, const std::optional<std::string>& tokenizer);

// Throws UsageError when the file to be written is one of them, by whatever name.
void check_not_read(const std::string& written, const std::vector<std::string>& read);

}  // namespace minimind
