#pragma once

#include <optional>

#include "runtime/tokenizer/tokenizer.h"
#include "weights/base/fact.h"
#include "weights/model/config.h"

namespace minimind {

// Returns why a tokenizer cannot belong to a model, "found, expected"; std::nullopt if it can. MiniMind has
// three tokenizers of 6400 tokens: that of v1 and v2-early, that of v2, which has the same vocabulary with other
// special tokens, and that of v3. Some tokens identify their vocabularies. A vocabulary trained by the user is
// identified only by its special tokens, which are equal in v2 and v3: both are accepted.
std::optional<Fact> tokenizer_misfit(const Tokenizer& tokenizer, const Config& config);

}  // namespace minimind
