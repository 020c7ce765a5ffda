#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/generate/generate.h"

namespace minimind {

// See DryOptions. A token with a breaker in it has no penalty.
class Dry : public TextPenalties {
 public:
  // `token_texts` [vocab], the bytes of each token; empty if there are no breakers.
  Dry(const DryOptions& options, std::vector<std::string> token_texts);

  void accept(std::int32_t token) override;
  std::span<const LogitBias> penalties() override;

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
