#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

  std::unique_ptr<TextPenalties> copy() const override { return std::make_unique<Dry>(*this); }
  void accept(std::int32_t token) override;
  std::span<const LogitBias> penalties() override;

 private:
  // What is the same for every text. All sizes are of the vocabulary, or zero without breakers.
  struct Vocabulary {
    Vocabulary(const DryOptions& with_options, std::vector<std::string> token_texts);

    const DryOptions options;
    const std::vector<std::string> texts;
    std::size_t longest_breaker = 0;
    std::vector<bool> is_breaker;
  };
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::string tail_;               // the end of the text, long enough for the prefix of a breaker
  std::size_t since_breaker_ = 0;  // tokens that start after the last breaker
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> repeated_;  // of penalties()
  std::vector<LogitBias> penalties_;
};

}  // namespace minimind
