#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/generate/constraint.h"
#include "runtime/generate/sampler.h"
#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

struct ScoredToken {
  std::int32_t token;
  double log_probability;  // in nats

  bool operator==(const ScoredToken&) const = default;
};

// A token of a text and how likely the model found it there: by the softmax of the untouched logits, before any step of
// sampling.
struct TokenScore {
  ScoredToken token;
  std::vector<ScoredToken> top;  // the most likely tokens, the most likely first, of equals the smallest id
  std::size_t rank = 1;          // of `token` among all tokens, in the order of `top`

  bool operator==(const TokenScore&) const = default;
};

// Scores `token` by the logits [vocab] after which it came, with up to `top` alternatives. Throws Error if the logits
// have NaN or infinity.
TokenScore score_token(std::span<const float> logits, std::int32_t token, std::size_t top);

// Watches a stream of text for stop strings. Text that may be the start of one is held back until it is known not
// to be, so that nothing of a stop string is ever let through.
class StopFilter {
 public:
  // Empty strings never stop.
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) { std::erase(stops_, ""); }

  // The text that may be shown now. After a stop string was found, which ends just before the first of them, everything
  // else is swallowed.
  std::string push(std::string_view text);

  // What was held back at the end of the stream.
  std::string finish() { return std::exchange(held_, ""); }

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

// Penalties of tokens that depend on the text before them. One object follows one text.
class TextPenalties {
 public:
  virtual ~TextPenalties() = default;
  virtual std::unique_ptr<TextPenalties> copy() const = 0;
  virtual void accept(std::int32_t token) = 0;  // the next one of the text

  // Returns the penalised tokens, each once, in no order, with what is added to their logits. Valid until accept().
  virtual std::span<const LogitBias> penalties() = 0;
};

// Makes the penalties of DRY, of a vocabulary of that size. Throws UsageError if there are sequence breakers but no
// tokenizer, which knows the texts of the tokens. Every program defines it: dry.cpp has that of all but the core, whose
// throws.
std::unique_ptr<TextPenalties> make_dry(const DryOptions& options, const Tokenizer* tokenizer, std::size_t vocab_size);

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

struct GenerateOptions {
  std::size_t max_tokens = 0;             // the most that are generated
  std::vector<std::int32_t> end_tokens;   // any of them ends the text; empty to ignore the end of text
  std::vector<std::string> stop;          // any of them ends the text and is not part of it
  std::vector<std::int32_t> text_tokens;  // special tokens that are part of the text all the same
  SamplingOptions sampling;
  std::shared_ptr<const TextPenalties> penalties;  // of `sampling`, after the prompt; null: yet to be made
  MakeConstraint constraint;                       // of the text; empty: any token may follow
  bool judges_text = true;                         // find out Generated::conforms, which reads the whole text again
  // Returns the logits from which the token after these is sampled, valid until the next call; empty: the model's.
  std::function<std::span<const float>(std::span<const std::int32_t> tokens, std::span<const float> logits)> process;
  Drafter* drafter = nullptr;         // guesses tokens, which changes nothing but the speed; null: none
  std::size_t draft_tokens = 0;       // the most that are drafted at once; fewer than forward.max_tokens()
  std::optional<std::size_t> scores;  // score every token, with this many alternatives; std::nullopt: none
  bool score_prompt = false;          // if there are scores, also those of the prompt, which computes all of it
};

enum class FinishReason { stop, length, interrupted };

constexpr std::string_view name_of(FinishReason reason) {
  constexpr std::string_view names[] = {"stop", "length", "interrupted"};
  return names[static_cast<std::size_t>(reason)];
}

struct Generated {
  std::vector<std::int32_t> tokens;         // as sampled, with the end token where one came
  std::string text;                         // without other special tokens and stop strings; empty without a tokenizer
  std::vector<TokenScore> scores{};         // [tokens], if requested
  std::vector<TokenScore> prompt_scores{};  // of the prompt's tokens but the first, if requested
  FinishReason finish_reason = FinishReason::length;
  bool conforms = true;                  // to the constraint, if it is judged: not when the text was cut short
  std::size_t prompt_tokens_reused = 0;  // were in the context
  std::size_t prompt_tokens_done = 0;    // were computed: all the others, unless it was interrupted
  double prompt_seconds = 0;             // until the first token could be sampled
  double decode_seconds = 0;             // from then on
  std::size_t drafted = 0;               // tokens by the drafter
  std::size_t accepted = 0;              // of them, those that were sampled and kept

  // In decode_seconds: the first token comes out of the prompt's logits.
  std::size_t decoded_tokens() const { return tokens.empty() ? 0 : tokens.size() - 1; }
};

// Called with each piece of text, whole characters only, as soon as it is certain.
using TextCallback = std::function<void(std::string_view)>;

// Tokens in, certain text out: bytes become whole characters, and stop strings are cut.
class TextStream {
 public:
  // `options` and `tokenizer`, which may be null, must outlive this.
  TextStream(const Tokenizer* tokenizer, const GenerateOptions& options, TextCallback on_text);

  void push(std::int32_t token);
  void finish();

  bool stopped() const { return filter_.stopped(); }
  std::string take_text() { return std::move(text_); }

 private:
  void show(const std::string& piece);

  const Tokenizer* tokenizer_;
  const std::vector<std::int32_t>& text_tokens_;
  Utf8Stream utf8_;
  StopFilter filter_;
  TextCallback on_text_;
  std::string text_;
};

// One text as it is generated, step by step: next() says what to run, alone or in a batch with other texts, and take()
// samples from its logits. The text is the same in any company. What generate() says of its arguments, results and
// errors holds here.
class Generation {
 public:
  // All but `prompt` must outlive this.
  Generation(const Model& model, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
             const GenerateOptions& options, TextCallback on_text, const std::atomic<bool>& interrupted);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Works out what may follow, as Constraint does, or else take() has to; the text may end by that.
  bool prepare();
  bool is_prepared() const { return !constraint_ || prepared_; }

  // What the text has to keep to; null if nothing.
  Constraint* constraint() const { return constraint_.get(); }

  // Whether nothing is left to run. Ends the text once `interrupted` is set.
  bool ended();

  // How many tokens of the prompt have to be run: all that were not in the context.
  std::size_t prompt_tokens() const { return prompt_size_ - result_.prompt_tokens_reused; }

  // How many of them are left to run, and whether any are.
  std::size_t prompt_tokens_left() const { return in_prompt() ? prompt_size_ - context_.size() : 0; }
  bool in_prompt() const { return context_.size() < prompt_size_ && tokens_.size() == prompt_size_; }

  // The scores so far, as Generated has them. A callback may read them: those of the tokens up to its text are there.
  const std::vector<TokenScore>& scores() const { return result_.scores; }
  const std::vector<TokenScore>& prompt_scores() const { return result_.prompt_scores; }

  // The tokens generated so far.
  std::span<const std::int32_t> generated() const { return std::span(tokens_).subspan(prompt_size_); }

  // How many tokens have been run.
  std::size_t position() const { return context_.size(); }

  // The tokens to run next: up to `most` of the prompt, or the last token with drafts, up to `most` together. Valid
  // until take(). Not to be called once the text has ended.
  Piece next(std::size_t most);

  // Continues the text by the logits [logit_rows, vocab] of the piece, after it was run. Throws Error as Sampler does.
  void take(Matrix<const float> logits);

  // The result, once.
  Generated finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t room() const;  // how many tokens may still be generated
  bool scores_prompt() const { return options_.scores && options_.score_prompt; }
  Matrix<const float> score_prompt(Matrix<const float> logits);
  void sample_row_by_row(Matrix<const float> logits);
  bool sample(std::span<const float> logits);
  bool end(FinishReason reason);
  void draft(std::size_t most);

  Context& context_;
  const GenerateOptions& options_;
  const std::atomic<bool>& interrupted_;
  Clock::time_point start_;
  std::optional<Clock::time_point> decode_start_;  // when the prompt's logits were there
  std::vector<std::int32_t> end_tokens_;
  std::optional<Sampler> sampler_;
  std::unique_ptr<TextPenalties> dry_;
  std::optional<TextStream> stream_;
  std::vector<std::int32_t> tokens_;  // prompt and generated
  std::size_t prompt_size_ = 0;
  std::unique_ptr<Constraint> constraint_;
  std::span<const std::int32_t> drafts_;  // after the last token of the text
  std::vector<std::int32_t> batch_;       // the last token and the drafts
  bool ended_ = false, prepared_ = false;
  Generated result_;
};

// Returns the tokens that end a text: those of the config and of the tokenizer, which may be null. One that was only
// assumed for the config counts if the tokenizer names none.
std::vector<std::int32_t> end_tokens(const Config& config, bool eos_was_assumed, const Tokenizer* tokenizer);

// Continues the prompt until an end token, a stop string, max_tokens, or until prompt and text together fill the
// context's capacity (both `length`), or until `interrupted` is set. `tokenizer` may be null: then there is no text.
// `prompt` is all of it: what the context has in common with it is kept and not computed again, which changes nothing
// in the result; the rest of the context is forgotten. Afterwards the context has the prompt and the generated tokens:
// often all but the last, whose logits are not needed; less after an interrupt.
// With a constraint, only tokens that it allows are sampled, and the text ends (`stop`) when nothing can follow. With a
// drafter, the last token and what is drafted after it are run as one batch, and then sampled from its logits as ever,
// until a token is sampled that is not the one drafted. A batch has bit for bit the logits of single tokens, so that
// all of the result but times and counts is the same with any drafter and without one, for every seed and option.
// Throws UsageError when there are stop strings or a constraint but no tokenizer, as Sampler does, and Error as
// Constraint does and if the prompt is empty, has unknown ids or does not fit the context, which then does not change.
Generated generate(Forward& forward, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
                   const GenerateOptions& options, const TextCallback& on_text, const std::atomic<bool>& interrupted);

}  // namespace minimind
