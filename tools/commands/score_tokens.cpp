#include "tools/commands/score_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "tools/commands/statistics.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/progress.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// A model that runs one window after another.
class Reader {
 public:
  Reader(const LLM& llm, std::size_t positions)
      : llm_(llm),
        positions_(positions),
        forward_(llm.forward(positions, positions)),
        logits_(forward_.max_tokens() * llm.config.vocab_size) {}

  void begin_window() { context_.emplace(llm_.context(positions_)); }

  // Returns the logits of the last `rows` of the tokens, valid until the next call.
  Matrix<const float> read(std::span<const std::int32_t> tokens, std::size_t rows) {
    const Matrix<float> logits{logits_.data(), rows, llm_.config.vocab_size};
    forward_.run(*context_, tokens, logits);
    return as_const(logits);
  }

  std::size_t max_tokens() const { return forward_.max_tokens(); }

 private:
  const LLM& llm_;
  std::size_t positions_;
  Forward forward_;
  std::optional<Context> context_;
  std::vector<float> logits_;
};

bool is_scored(const std::vector<bool>& scored, std::size_t token) {
  return scored.empty() || scored[token];
}

class Scorer {
 public:
  Scorer(const LLM& model, const LLM* against, std::span<const std::int32_t> tokens, const std::vector<bool>& scored,
         std::size_t positions)
      : tokens_(tokens), scored_(scored), model_(model, positions) {
    if (against) against_.emplace(*against, positions);
  }

  // Calls show() after each batch. Throws Cancelled; the scores so far are then whole.
  template <class Show>
  void score(const Window& window, Show show) {
    model_.begin_window();
    if (against_) against_->begin_window();
    const std::size_t inputs_end = window.end - 1;  // nothing is scored after the last token
    for (std::size_t first = window.begin; first < inputs_end;) {
      const std::size_t last = std::min(first + model_.max_tokens(), inputs_end);
      score_batch(first, last, last - std::clamp(window.first_scored - 1, first, last));
      first = last;
      show();
    }
  }

  const TokenScores& scores() const { return scores_; }

 private:
  // Runs tokens [first, last) and scores the tokens after the last `rows` of them.
  void score_batch(std::size_t first, std::size_t last, std::size_t rows) {
    const auto batch = tokens_.subspan(first, last - first);
    const Matrix<const float> logits = model_.read(batch, rows);
    const Matrix<const float> against_logits = against_ ? against_->read(batch, rows) : Matrix<const float>{};
    for (std::size_t row = 0; row < rows; ++row) {
      check_cancelled();
      const std::size_t token = last - rows + row + 1;
      if (!is_scored(scored_, token)) continue;
      distribution_.assign({logits.row(row), logits.cols});
      const auto id = static_cast<std::size_t>(tokens_[token]);
      scores_.each_nats.push_back(checked(-distribution_.log_probability(id), token));
      scores_.nats += scores_.each_nats.back();
      if (against_) compare({against_logits.row(row), against_logits.cols}, token);
      ++scores_.tokens;
    }
  }

  void compare(std::span<const float> against_logits, std::size_t token) {
    against_distribution_.assign(against_logits);
    const auto id = static_cast<std::size_t>(tokens_[token]);
    scores_.against_nats += checked(-against_distribution_.log_probability(id), token);
    scores_.kl.push_back(checked(against_distribution_.kl_divergence_to(distribution_), token));
    scores_.agreeing += against_distribution_.top1() == distribution_.top1();
  }

  static double checked(double nats, std::size_t token) {
    if (std::isfinite(nats)) return nats;
    throw Error(
        fmt::format("the logits before token {} are not finite numbers: the weights are corrupt, or "
                    "too large to be computed with",
                    token));
  }

  std::span<const std::int32_t> tokens_;
  const std::vector<bool>& scored_;
  Reader model_;
  std::optional<Reader> against_;
  Distribution distribution_, against_distribution_;
  TokenScores scores_;
};

}  // namespace

std::vector<Window> sliding_windows(std::size_t begin, std::size_t end, std::size_t size, std::size_t stride) {
  assert(begin <= end && 1 <= stride && stride <= size && 2 <= size);
  const std::size_t length = stride == size ? size + 1 : size;
  std::vector<Window> windows;
  for (std::size_t scored = begin + 1; scored < end; begin += stride) {
    windows.push_back({begin, scored, begin + std::min(length, end - begin)});
    scored = windows.back().end;
  }
  return windows;
}

std::size_t scored_tokens(std::span<const Window> windows, const std::vector<bool>& scored) {
  std::size_t tokens = 0;
  for (const Window& window : windows) {
    for (std::size_t i = window.first_scored; i < window.end; ++i) tokens += is_scored(scored, i);
  }
  return tokens;
}

TokenScores score_tokens(const LLM& model, const LLM* against, std::span<const std::int32_t> tokens,
                         std::span<const Window> windows, const std::vector<bool>& scored) {
  check_tokens(tokens, model.config.vocab_size);
  std::size_t positions = 1;
  for (const Window& window : windows) positions = std::max(positions, window.end - 1 - window.begin);
  Scorer scorer(model, against, tokens, scored, positions);
  Progress progress(std::string(translated("perplexity")), scored_tokens(windows, scored), ProgressUnit::tokens);
  const WatchedInterrupts interrupts;
  const Cancellation cancellation(interrupts.flag());
  const auto show = [&] {
    const TokenScores& scores = scorer.scores();
    const double so_far = std::exp(scores.nats / static_cast<double>(std::max<std::size_t>(scores.tokens, 1)));
    progress.show(scores.tokens, scores.tokens > 0 ? localized("perplexity {:.2f}", so_far) : "");
  };
  try {
    for (const Window& window : windows) scorer.score(window, show);
  } catch (const Cancelled&) {
    // The scores so far are the result.
  }
  return scorer.scores();
}

}  // namespace minimind
