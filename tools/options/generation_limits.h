#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/load_engine.h"

namespace minimind {

// What ends a text: the tokens that the config names and what the tokenizer, which may be null, calls its end of text;
// an assumed one only if neither names any.
std::vector<std::int32_t> end_tokens(const Engine& engine, const Tokenizer* tokenizer);

// Says on standard error if end_tokens() is an assumed one.
void print_assumed_end(const Engine& engine, const Tokenizer* tokenizer);

// The positions of the context: those given, else as many as the model was made for. More than that is said unless
// `quiet`.
std::size_t context_size(std::optional<std::size_t> given, const Config& config, bool quiet);

// Throws UsageError for a --stop that is empty or no UTF-8.
void check_stops(const std::vector<std::string>& stops);

}  // namespace minimind
