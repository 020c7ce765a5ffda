#pragma once

#include <optional>
#include <string>

#include "runtime/tokenizer/tokenizer.h"
#include "weights/model/config.h"

namespace minimind {

// Why a tokenizer cannot be that of a model, "found, expected" in one line; std::nullopt if it may be. MiniMind has had
// three tokenizers, all of 6400 tokens: that of v1 and v2-early, that of v2, which has the same vocabulary with other
// special tokens, and that of v3. They are known by some tokens of their vocabularies. Of another vocabulary, which
// a user trained, only the special tokens can be told, and v2 and v3 have the same: then it may be either's.
std::optional<std::string> tokenizer_misfit(const Tokenizer& tokenizer, const Config& config);

}  // namespace minimind
