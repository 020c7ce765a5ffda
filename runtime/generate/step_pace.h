#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace minimind {

// What a step runs, in the numbers that its time grows with.
struct StepWork {
  std::size_t rows = 0;             // of texts that are decoded
  std::size_t row_positions = 0;    // that they attend to
  std::size_t tokens = 0;           // of prompts
  std::size_t token_positions = 0;  // that they attend to

  void add_decoded(std::size_t position, std::size_t count);
  void add_prompt(std::size_t position, std::size_t count);
};

// Decides how many tokens of prompts a step may run, so that it takes at most `longest_step` times as long as the same
// step without prompts.
//
// The time of a step is modelled as a sum: a constant, a cost for each number in StepWork, and one for having prompts
// at all. A Kalman filter estimates the costs from the times of all steps, and how uncertain they are. A step gets as
// many tokens as fit in spite of that uncertainty, so little is risked while little is known. When the time without
// prompts has become uncertain, one step runs without them.
//
// The model is a straight line, but times are not. A step has at most twice as many tokens as an earlier one that was
// short enough: it then takes at most twice as long as that one.
class StepPace {
 public:
  // `hidden_size` is that of the model.
  StepPace(double longest_step, std::size_t hidden_size);

  // Returns how many of the next `most` tokens of a prompt, which follow `position` others, may be added to `work`.
  // Returns 0 for the first prompt of a step only to measure a step without prompts, never twice in a row.
  std::size_t tokens(const StepWork& work, std::size_t position, std::size_t most) const;

  // Whether a step of texts takes at most `longest_step` times as long as `least`, in spite of the uncertainty.
  bool fits(const StepWork& work, const StepWork& least) const;

  // Learns from a step that has run.
  void learn(const StepWork& work, double seconds);

 private:
  static constexpr std::size_t costs = 6;
  using Vector = std::array<double, costs>;
  using Square = std::array<Vector, costs>;
  struct Estimate {
    double value;
    double error;  // one standard deviation
    double most() const { return value + error; }
  };
  static Vector features(const StepWork& work);
  Estimate estimate(const Vector& x) const;
  bool measures_alone(const StepWork& work) const;
  static Vector excess(const StepWork& work, const StepWork& least, double times);
  bool surprises(const Vector& x, double seconds);
  void start(double seconds);
  void update(const Vector& x, double seconds);
  void raise_to_zero(std::size_t cost);

  double longest_step_;
  double hidden_size_;
  Vector cost_{};        // seconds each
  Square covariance_{};  // of cost_
  std::size_t most_tokens_ = 1;
  std::size_t prompt_steps_ = 0;
  std::size_t long_steps_ = 0;  // in a row, longer than expected
  bool started_ = false;
  bool last_had_prompts_ = true;
};

// Limits the tokens of prompts in a step by the times of earlier steps, so that a step takes at most about `longest`
// seconds, also a step of prompts alone, of which StepPace knows nothing: only between steps is a client noticed that
// has disconnected, or one that waits.
class PromptLimit {
 public:
  // Steps have `least` to `most` tokens.
  PromptLimit(double longest, std::size_t least, std::size_t most)
      : longest_(longest), least_(least), most_(most), tokens_(most) {}

  // Returns the limit of a step with so many rows of texts, divided by `divisor`. A step with many rows is long by
  // itself: at least half as many tokens lengthen it by half at most, while with few of them the last of many prompts
  // that come together would wait for seconds.
  std::size_t tokens(std::size_t rows = 0, std::size_t divisor = 1) const {
    return std::max({least_, tokens_ / divisor, rows / 2});
  }

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
