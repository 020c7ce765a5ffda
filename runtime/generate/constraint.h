#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

// Says which tokens may follow a text, for example those that keep it within a grammar. One object follows one text.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // Works out what may follow, in parts of some milliseconds at most: returns false after a part that is not the last.
  // Throws Error if the text is not complete and no token of the vocabulary continues it.
  virtual bool prepare() = 0;

  // Returns [vocab], 1 for every token that may come next, or nothing if every token may. Valid until accept(). What
  // prepare() has left is worked out, here and by finished().
  virtual std::span<const std::uint8_t> allowed() = 0;

  // Takes the next token, which must be allowed and not an end token, and the number of tokens that may follow it.
  virtual void accept(std::int32_t token, std::size_t tokens_left) = 0;

  // Returns true if the text is complete and no token can follow.
  virtual bool finished() = 0;

  // Gives up memory for what can be worked out again.
  virtual void forget() = 0;

  // Returns true if `text`, which is that of all tokens taken, is complete. Only the destructor may follow.
  virtual bool conforms(std::string_view text) = 0;
};

// The start of a text that is to be constrained.
struct UnconstrainedText {
  const Tokenizer& tokenizer;                // must outlive the constraint
  std::size_t vocab_size;                    // of the model
  std::span<const std::int32_t> end_tokens;  // end the text wherever it is complete
  std::size_t tokens_left;                   // that may be generated
};

// Makes the constraint of a text.
using MakeConstraint = std::function<std::unique_ptr<Constraint>(const UnconstrainedText&)>;

}  // namespace minimind
