#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/generate/sampling_options.h"

namespace minimind {

// See DryOptions.
class Dry {
 public:
  // `token_texts` [vocab], the bytes of each token; empty if there are no breakers.
  Dry(const DryOptions& options, std::vector<std::string> token_texts);

  // Takes the next token of the text.
  void accept(std::int32_t token);

  // Returns the penalised tokens, each once, in no order, with what is added to their logits, which is negative. A
  // token with a breaker in it has no penalty. Valid until accept().
  std::span<const LogitBias> penalties();

 private:
  DryOptions options_;
  std::vector<std::string> token_texts_;
  std::vector<bool> is_breaker_;  // [vocab]
  std::string tail_;              // the end of the text, long enough for the prefix of a breaker
  std::size_t longest_breaker_ = 0;
  std::size_t since_breaker_ = 0;  // tokens that start after the last breaker
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> repeated_;  // of penalties()
  std::vector<LogitBias> penalties_;
};

}  // namespace minimind
