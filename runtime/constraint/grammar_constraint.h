#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/generate/constraint.h"
#include "runtime/grammar/grammar.h"
#include "runtime/grammar/state.h"
#include "runtime/grammar/token_trie.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

// Returns the trie of all tokens that are text. Special tokens are not, even if the tokenizer spells them.
std::shared_ptr<const TokenTrie> make_token_trie(const Tokenizer& tokenizer);

// The tokens that keep a text within a grammar and let it end in time. If a completion takes at most as many tokens as
// may still be generated, only tokens after which that stays so are allowed: see GrammarState::most_tokens_to_end().
// With a vocabulary that has every byte, as MiniMind's have, a text with room for its shortest completion is complete.
class GrammarConstraint {
 public:
  // `trie` is make_token_trie(tokenizer), which all texts of a tokenizer can share. Special tokens are never allowed,
  // except end tokens at positions where the grammar may end. `tokens_left` is the number of tokens that may be
  // generated.
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                    const Tokenizer& tokenizer, std::size_t vocab_size, std::span<const std::int32_t> end_tokens,
                    std::size_t tokens_left);

  // Works out what may follow, as Constraint has it. Throws Error if the text is not complete and no token of the
  // vocabulary continues it, and as GrammarState does.
  bool prepare();

  // Returns [vocab], 1 for every token that may come next; all 0 if none is left. Valid until accept().
  std::span<const std::uint8_t> allowed() {
    prepare_all();
    return std::span(allowed_).first(vocab_size_);
  }

  // Takes the next token, which must be allowed and not an end token, and the number of tokens that may follow it.
  void accept(std::int32_t token, std::size_t tokens_left);

  // Returns to the start of the text.
  void restart(std::size_t tokens_left);

  // As Constraint has it.
  void forget();

  // Returns how many tokens complete the text so far, at most. Once prepared, measure_end() does a part of the work, as
  // GrammarState has it.
  bool measure_end() { return state_->measure_end(); }
  std::uint64_t most_tokens_to_end() {
    prepare_all();
    while (!measure_end()) continue;
    return state_->most_tokens_to_end();
  }

  // Returns true if the text so far is one of the grammar's and no token can follow.
  bool finished() {
    prepare_all();
    return finished_;
  }

  // Returns true if `text` is one of the grammar's, which prepare() has not failed on. Goes back to the start.
  bool conforms(std::string_view text);

 private:
  enum class Left { state, end, advance, mask, nothing, failed };

  Left next_after(Left part);  // works the part out
  void prepare_all() {
    while (!prepare()) continue;
  }
  void begin();
  void update();
  bool mark_allowed(std::uint64_t most_to_end);

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> end_tokens_;
  std::size_t vocab_size_;
  Left left_ = Left::state;   // to work out
  std::size_t tokens_left_;   // that may follow
  std::int32_t token_ = 0;    // the last one
  bool ends_in_time_ = true;  // within tokens_left_
  std::optional<GrammarState> state_{};
  TokenBits bits_;
  std::vector<std::uint8_t> allowed_;  // of all ids that the model or the tokenizer has
  bool finished_ = false;
};

// Where texts of a grammar are in what a model writes: between tokens that mark their start and end, as calls of
// functions are. The grammar's texts must end by themselves, as JSON objects do.
struct GrammarMarks {
  std::vector<std::int32_t> open, close;  // neither is empty
  // The model may write anything outside of the marks. Otherwise it may only open another text, or end.
  bool anything_outside = false;
  bool starts_open = false;  // the prompt ends with `open`
};

// The tokens that keep what a model writes within a grammar: all of it, or every text between marks.
class MarkedConstraint final : public Constraint {
 public:
  // As GrammarConstraint has them; without `marks` it is the same. With marks and without end tokens, a text ends after
  // the first text of the grammar unless anything may follow.
  MarkedConstraint(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                   const Tokenizer& tokenizer, std::size_t vocab_size, std::span<const std::int32_t> end_tokens,
                   std::size_t tokens_left, std::optional<GrammarMarks> marks);

  bool prepare() override;
  std::span<const std::uint8_t> allowed() override;
  void accept(std::int32_t token, std::size_t tokens_left) override;
  void forget() override { constraint_.forget(); }
  bool finished() override {
    while (!prepare()) continue;
    return finished_;
  }
  bool conforms(std::string_view text) override;

 private:
  enum class Place { outside, mark, text };

  void go_outside(std::size_t tokens_left);
  void expect_mark(std::span<const std::int32_t> rest, Place next);
  void allow_only(std::int32_t token);

  const std::optional<GrammarMarks> marks_;
  const std::vector<std::int32_t> end_tokens_;
  GrammarConstraint constraint_;
  std::size_t tokens_left_;
  bool has_begun_ = false;    // shortest_ is known
  bool prepared_ = false;     // what follows a token of a text is, too
  std::size_t shortest_ = 0;  // tokens from `open` to the end of the shortest text, at most
  Place place_ = Place::text;
  std::deque<std::int32_t> mark_;  // what is left of a mark
  Place after_mark_ = Place::text;
  std::vector<std::uint8_t> allowed_;  // in a mark and outside of marks
  bool all_allowed_ = false;
  bool finished_ = false;
};

// Returns what makes the constraint of a text of the grammar, see MarkedConstraint; empty if the grammar is null. What
// is generated always begins a text of the grammar, and is one where the limits leave room for it. `trie` is
// make_token_trie() of the texts' tokenizer, which they share; null: each text makes its own.
MakeConstraint constrain_to(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie = nullptr,
                            std::optional<GrammarMarks> marks = std::nullopt);

}  // namespace minimind
