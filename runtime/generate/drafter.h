#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace minimind {

// Guesses how a text goes on, for less than the model takes to compute it. A wrong guess costs time and nothing else:
// generate() takes of a draft what it would have drawn itself.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Up to `most` tokens of the vocabulary that may follow `tokens`, which are all of the text so far, the prompt with
  // what was generated, and at least one; none where it has no idea, or once `interrupted` is set. Any text may come
  // after any other; it is quick where most of it came before. Valid until the next call.
  virtual std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                              const std::atomic<bool>& interrupted) = 0;
};

}  // namespace minimind
