#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tokenizer.h"

namespace minimind {

// Tokens of `text`, which begin as `known` does for as long as that spells the same text. A model may have spelled its
// words with other tokens than encode() would choose; what it has computed for them is kept only by keeping these.
// Where `known` goes on with another text, encode() takes over behind the last special token before that place: at
// special tokens it cuts every text, so that what it returns for the rest is part of what it would for the whole.
std::vector<std::int32_t> encode_keeping(const Tokenizer& tokenizer, std::string_view text,
                                         std::span<const std::int32_t> known);

}  // namespace minimind
