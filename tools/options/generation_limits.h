#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/load_engine.h"

namespace minimind {

// Returns the tokens that end a text: those of the config and of the tokenizer, which may be null; the assumed token if
// neither names one.
std::vector<std::int32_t> end_tokens(const Engine& engine, const Tokenizer* tokenizer);

// Prints a notice if end_tokens() returns an assumed token.
void print_assumed_end(const Engine& engine, const Tokenizer* tokenizer);

// Returns the positions of the context: `given`, otherwise the model's. Prints a notice unless `quiet` if `given` is
// larger than the model's.
std::size_t context_size(std::optional<std::size_t> given, const Config& config, bool quiet);

}  // namespace minimind
