#pragma once

#include <algorithm>
#include <cstddef>

namespace minimind {

// Limits the tokens of prompts in a step by the times of earlier steps, so that a step takes at most about `longest`
// seconds: only between steps is a client noticed that has disconnected, or one that waits.
class PromptLimit {
 public:
  // Steps have `least` to `most` tokens.
  PromptLimit(double longest, std::size_t least, std::size_t most)
      : longest_(longest), least_(least), most_(most), tokens_(most) {}

  std::size_t tokens() const { return tokens_; }

  // Learns from a step that has run with `tokens` tokens of prompts. One that other programs have delayed halves the
  // limit at most; only steps that use it up raise it.
  void learn(std::size_t tokens, double seconds) {
    if (tokens == 0 || (seconds <= longest_ && tokens < tokens_)) return;
    const double change = std::clamp(longest_ / std::max(seconds, 1e-9), 0.5, 2.0);
    const auto fitting = static_cast<std::size_t>(static_cast<double>(tokens) * change);
    tokens_ = std::clamp(fitting, least_, most_);
  }

 private:
  double longest_;
  std::size_t least_, most_, tokens_;
};

}  // namespace minimind
