#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace minimind {

// DRY, "don't repeat yourself" (text-generation-webui pull request 5677), with the defaults of llama.cpp. A token that
// would continue a repetition loses multiplier * base ^ (n - allowed_length). n >= allowed_length is the number of
// tokens at the end of the text that also precede an earlier occurrence of that token.
struct DryOptions {
  double multiplier = 0;                                             // 0: off
  double base = 1.75;                                                // at least 1
  std::size_t allowed_length = 2;                                    // shorter repetitions are not penalised
  std::size_t penalty_last_n = 64;                                   // number of last tokens considered; 0: off
  std::vector<std::string> sequence_breakers{"\n", ":", "\"", "*"};  // strings that end a repetition

  bool on() const { return multiplier > 0 && penalty_last_n > 0; }
};

class Dry {
 public:
  // `token_texts` [vocab], the bytes of each token; empty if there are no breakers.
  Dry(const DryOptions& options, std::vector<std::string> token_texts);

  // Takes the next token of the text.
  void accept(std::int32_t token);

  struct Penalty {
    std::int32_t token;
    double amount;
  };
  // Returns the penalised tokens with their penalties, each token once, in no order. A token with a breaker in it has
  // none. Valid until accept().
  std::span<const Penalty> penalties();

 private:
  DryOptions options_;
  std::vector<std::string> token_texts_;
  std::vector<bool> is_breaker_;  // [vocab]
  std::string tail_;              // the end of the text, long enough for the prefix of a breaker
  std::size_t longest_breaker_ = 0;
  std::size_t since_breaker_ = 0;  // tokens that start after the last breaker
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> repeated_;  // of penalties()
  std::vector<Penalty> penalties_;
};

}  // namespace minimind
