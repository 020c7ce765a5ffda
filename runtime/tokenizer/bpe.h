#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/text/unicode.h"

namespace minimind {

// Returns the size in bytes of the first word of `text`, which must be valid UTF-8 and not empty, by GPT-2's pattern:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Merging never crosses the edge of a word. Every character belongs to exactly one word.
std::size_t gpt2_word_size(std::string_view text);

// Returns the end of the run of characters of a class that starts at byte `begin`.
std::size_t end_of_run(std::string_view text, std::size_t begin, CharClass wanted);

// A rule of byte-pair encoding: adjacent tokens `left` and `right` become the token `result`.
struct BpeMerge {
  std::int32_t left;
  std::int32_t right;
  std::int32_t result;
};

// Byte-pair merging: while two adjacent tokens have a rule, the rule of the lowest rank is applied, leftmost first. O(n
// log n) for a word of n symbols, because words may be long: a text of Chinese letters is a single word.
class Bpe {
 public:
  // `merges` are in order of rank. Every id must be in [0, vocab_size). Of two rules for one pair the later applies, as
  // in Hugging Face tokenizers.
  Bpe(std::span<const BpeMerge> merges, std::size_t vocab_size);

  // Merges `symbols`, one word, in place.
  void merge(std::vector<std::int32_t>& symbols) const;

 private:
  struct Rule {
    std::int32_t right;
    std::uint32_t rank;
    std::int32_t result;
  };
  struct Word;

  const Rule* find(std::int32_t left, std::int32_t right) const;
  void queue_merge(Word& word, std::uint32_t position) const;
  void merge_queued(Word& word) const;

  std::vector<std::uint32_t> first_rule_;  // [vocab_size + 1]: the rules of `left` start here and end at the next
  std::vector<Rule> rules_;                // by left, right and rank
  std::vector<std::int32_t> result_of_;    // [merges], by rank
};

}  // namespace minimind
