#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace minimind {

// A cheap predictor of the next tokens. A wrong draft costs only time: generate() accepts the tokens of a draft that it
// would have sampled itself.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Returns up to `most` tokens of the vocabulary that may follow `tokens`. `tokens` is the whole text so far, prompt
  // and generated tokens, and not empty. Returns none without a prediction, or once `interrupted` is set. Successive
  // texts may differ arbitrarily; the call is fast if most of the text is unchanged. Valid until the next call.
  virtual std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                              const std::atomic<bool>& interrupted) = 0;
};

}  // namespace minimind
