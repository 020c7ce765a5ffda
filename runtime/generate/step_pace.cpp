#include "runtime/generate/step_pace.h"

#include <cmath>

namespace minimind {
namespace {

// Relative standard deviations.
constexpr double noise = 0.15;     // of a measured time
constexpr double drift = 0.03;     // of a cost from one step to the next
constexpr double too_vague = 0.1;  // for the time of a step without prompts

// A time this many standard deviations above the expected one counts as no more, because another program may have used
// the processor.
constexpr double most_deviations = 2;

// The known pace no longer holds after this many much longer steps in a row, or one that is much shorter.
constexpr std::size_t most_long_steps = 3;
constexpr double much_longer = 3, much_shorter = -4;  // standard deviations

// Times the longest step that is aimed at.
constexpr double explored = 1.1;                 // by a step that is to show what more tokens cost
constexpr double tolerated = 1.25;               // before the tokens are halved
constexpr std::size_t exploration_interval = 8;  // steps with prompts

// Positions that `count` tokens attend to which follow `position` others.
std::size_t attended(std::size_t position, std::size_t count) {
  return count * position + count * (count + 1) / 2;
}

StepWork without_prompts(const StepWork& work) {
  return {.rows = work.rows, .row_positions = work.row_positions};
}

}  // namespace

void StepWork::add_decoded(std::size_t position, std::size_t count) {
  rows += count;
  row_positions += attended(position, count);
}

void StepWork::add_prompt(std::size_t position, std::size_t count) {
  tokens += count;
  token_positions += attended(position, count);
}

StepPace::StepPace(double longest_step, std::size_t hidden_size)
    : longest_step_(longest_step), hidden_size_(static_cast<double>(hidden_size)) {}

std::size_t StepPace::tokens(const StepWork& work, std::size_t position, std::size_t most) const {
  const bool first = work.tokens == 0;
  if (first && measures_alone(work)) return 0;
  most = std::min(most, most_tokens_ - std::min(most_tokens_, work.tokens));
  const StepWork alone = without_prompts(work);
  const auto with = [&](std::size_t count) {
    StepWork more = work;
    more.add_prompt(position, count);
    return more;
  };
  std::size_t fitting = first ? std::min<std::size_t>(1, most) : 0;
  for (std::size_t beyond = most + 1; fitting + 1 < beyond;) {
    const std::size_t count = (fitting + beyond) / 2;
    (fits(with(count), alone) ? fitting : beyond) = count;
  }
  // From steps of one size nothing is learned about others.
  if (!first || fitting == most || (prompt_steps_ + 1) % exploration_interval != 0) return fitting;
  const std::size_t more = fitting + std::max<std::size_t>(1, fitting / 4);
  return more <= most && estimate(excess(with(more), alone, explored * longest_step_)).value <= 0 ? more : fitting;
}

bool StepPace::fits(const StepWork& work, const StepWork& least) const {
  return estimate(excess(work, least, longest_step_)).most() <= 0;
}

void StepPace::learn(const StepWork& work, double seconds) {
  last_had_prompts_ = work.tokens > 0;
  if (work.rows == 0) return;  // no text waits, and the costs of large batches are others
  const Vector x = features(work);
  if (!started_ || surprises(x, seconds)) start(seconds);
  update(x, seconds);
  if (work.tokens == 0) return;
  ++prompt_steps_;
  const double alone = estimate(features(without_prompts(work))).value;
  most_tokens_ = seconds > tolerated * longest_step_ * alone ? std::max<std::size_t>(1, work.tokens / 2)
                                                             : std::max(most_tokens_, 2 * work.tokens);
}

StepPace::Vector StepPace::features(const StepWork& work) {
  return {1,
          static_cast<double>(work.rows),
          static_cast<double>(work.row_positions),
          work.tokens > 0 ? 1.0 : 0.0,
          static_cast<double>(work.tokens),
          static_cast<double>(work.token_positions)};
}

StepPace::Estimate StepPace::estimate(const Vector& x) const {
  double value = 0, variance = 0;
  for (std::size_t i = 0; i < costs; ++i) {
    value += cost_[i] * x[i];
    for (std::size_t j = 0; j < costs; ++j) variance += x[i] * covariance_[i][j] * x[j];
  }
  return {value, std::sqrt(std::max(variance, 0.0))};
}

bool StepPace::measures_alone(const StepWork& work) const {
  if (!last_had_prompts_) return false;
  const Estimate alone = estimate(features(work));
  return !started_ || alone.error > too_vague * alone.value;
}

// The estimate of this is the time of the step minus `times` that of `least`.
StepPace::Vector StepPace::excess(const StepWork& work, const StepWork& least, double times) {
  Vector excess = features(work);
  const Vector of_least = features(least);
  for (std::size_t i = 0; i < costs; ++i) excess[i] -= times * of_least[i];
  return excess;
}

// Whether the time contradicts what is known.
bool StepPace::surprises(const Vector& x, double seconds) {
  const Estimate expected = estimate(x);
  const double deviations = (seconds - expected.value) / std::hypot(expected.error, noise * expected.value);
  long_steps_ = deviations > much_longer ? long_steps_ + 1 : 0;
  return long_steps_ > most_long_steps || deviations < much_shorter;
}

// Any cost may be as much as a whole step. A position costs about 1 / hidden_size of a row: a row multiplies matrices
// of that width.
void StepPace::start(double seconds) {
  started_ = true;
  long_steps_ = 0;
  most_tokens_ = 1;
  covariance_ = {};
  const Vector error{seconds, seconds, seconds / hidden_size_, seconds, seconds, seconds / hidden_size_};
  for (std::size_t i = 0; i < costs; ++i) covariance_[i][i] = error[i] * error[i];
}

void StepPace::update(const Vector& x, double seconds) {
  // A cost drifts by a part of itself, or of the step if it is hardly anything.
  const double expected = std::max(estimate(x).value, 0.1 * seconds);
  for (std::size_t i = 0; i < costs; ++i) {
    const double change = drift * std::max(cost_[i], x[i] > 0 ? 0.05 * expected / x[i] : 0);
    covariance_[i][i] += change * change;
  }
  const Estimate prediction = estimate(x);
  const double own = noise * std::max(prediction.value, 0.1 * seconds);
  const double variance = prediction.error * prediction.error + own * own;
  const double surprise = std::min(seconds - prediction.value, most_deviations * std::sqrt(variance));
  Vector shared{};  // with the time: covariance x
  for (std::size_t i = 0; i < costs; ++i) {
    for (std::size_t j = 0; j < costs; ++j) shared[i] += covariance_[i][j] * x[j];
  }
  for (std::size_t i = 0; i < costs; ++i) {
    cost_[i] += shared[i] * surprise / variance;
    for (std::size_t j = 0; j < costs; ++j) covariance_[i][j] -= shared[i] * shared[j] / variance;
  }
  for (std::size_t i = 0; i < costs; ++i) {
    if (cost_[i] < 0) raise_to_zero(i);
  }
}

// Sets a negative cost to 0. The others change as if it had been measured, so that the times of steps that have been
// seen hardly change.
void StepPace::raise_to_zero(std::size_t cost) {
  const double change = -cost_[cost] / covariance_[cost][cost];
  for (std::size_t i = 0; i < costs; ++i) cost_[i] += covariance_[i][cost] * change;
  cost_[cost] = 0;
}

}  // namespace minimind
