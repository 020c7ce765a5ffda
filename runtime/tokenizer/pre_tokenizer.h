#pragma once

#include <cstddef>
#include <string_view>

namespace minimind {

// The size in bytes of the first word of `text`, which is valid UTF-8 and not empty, as GPT-2's pattern cuts it:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Merging never crosses the edge of a word. Every character belongs to exactly one word.
std::size_t gpt2_word_size(std::string_view text);

}  // namespace minimind
