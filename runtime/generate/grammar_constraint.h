#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "runtime/grammar/state.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

// Which tokens keep a text within a grammar, and let it come to its end in time: as soon as the shortest text that ends
// it has as many bytes as tokens may still be generated, only tokens are allowed that leave it reachable. With a
// vocabulary that has every byte, as MiniMind's have, a text that could be complete within the limit is.
class GrammarConstraint {
 public:
  // Special tokens are no text and never allowed, but end tokens are where the grammar may end. They are not text even
  // where the tokenizer spells them. `tokens_left` is how many tokens may be generated. Throws as accept() does.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, const Tokenizer& tokenizer, std::size_t vocab_size,
                    std::span<const std::int32_t> end_tokens, std::size_t tokens_left);

  // [vocab], 1 for every token that may come next; all 0 when none is left. Valid until accept().
  std::span<const std::uint8_t> allowed() const { return allowed_; }

  // The next token, which is allowed and no end token, and how many may follow it. Throws Error when the text is not
  // complete and no token of the vocabulary continues with it, and as GrammarState does.
  void accept(std::int32_t token, std::size_t tokens_left);

  // Whether the text so far is one of the grammar's and no token can follow.
  bool finished() const { return finished_; }

  // Whether `text` is one of the grammar's.
  bool conforms(std::string_view text) const;

 private:
  void update(std::size_t tokens_left);
  bool mark_allowed(std::uint64_t most_bytes_to_end);

  std::shared_ptr<const Grammar> grammar_;
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> end_tokens_;
  TokenTrie trie_;
  GrammarState state_;
  std::vector<std::uint8_t> allowed_;
  bool finished_ = false;
};

}  // namespace minimind
