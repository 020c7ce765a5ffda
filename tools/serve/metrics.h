#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace minimind {

// How often values were at most each of some limits, as Prometheus has it.
class Histogram {
 public:
  static constexpr std::array limits{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0};

  void add(double seconds) {
    for (std::size_t i = 0; i < limits.size(); ++i) at_most_[i] += seconds <= limits[i];
    ++count_;
    sum_ += seconds;
  }

  Histogram& operator+=(const Histogram& other) {
    for (std::size_t i = 0; i < limits.size(); ++i) at_most_[i] += other.at_most_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    return *this;
  }

  std::uint64_t at_most(std::size_t limit) const { return at_most_[limit]; }
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, limits.size()> at_most_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// What an engine has done since it started, and what it has to do.
struct EngineCounts {
  std::uint64_t prompt_tokens = 0;  // computed
  std::uint64_t cached_tokens = 0;  // of prompts, found in the pool
  std::uint64_t generated_tokens = 0;
  std::uint64_t texts = 0;      // ended
  std::uint64_t abandoned = 0;  // of them, those whose client had gone
  std::size_t waiting = 0;
  std::size_t running = 0;
  std::size_t kv_bytes = 0;  // of all contexts in the pool
  std::size_t kv_budget = 0;
  Histogram step_seconds;
  Histogram first_token_seconds;  // from submit()
  Histogram token_gap_seconds;    // between the tokens of a text

  EngineCounts& operator+=(const EngineCounts& other) {
    prompt_tokens += other.prompt_tokens;
    cached_tokens += other.cached_tokens;
    generated_tokens += other.generated_tokens;
    texts += other.texts;
    abandoned += other.abandoned;
    waiting += other.waiting;
    running += other.running;
    kv_bytes += other.kv_bytes;
    kv_budget += other.kv_budget;
    step_seconds += other.step_seconds;
    first_token_seconds += other.first_token_seconds;
    token_gap_seconds += other.token_gap_seconds;
    return *this;
  }
};

// Returns the counts in Prometheus' text format. `answers` are counted by route and status. `models` are the counts of
// each model, which are also there by vLLM's names, for what watches servers of that kind.
std::string metrics_text(const std::map<std::pair<std::string, int>, std::uint64_t>& answers,
                         const std::map<std::string, EngineCounts>& models);

}  // namespace minimind
