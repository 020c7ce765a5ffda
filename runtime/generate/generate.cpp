#include "runtime/generate/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <optional>
#include <utility>

#include "runtime/generate/grammar_constraint.h"
#include "runtime/text/utf8.h"
#include "weights/io/error.h"

namespace minimind {
StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopFilter::push(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  // The first to be complete, and of those the longest: so it does not matter how the text was cut.
  std::size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos || std::pair(at + stop.size(), at) >= std::pair(end, begin)) continue;
    begin = at;
    end = at + stop.size();
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, "");
  }
  std::size_t kept = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, held_.size());
    while (length > kept && !held_.ends_with(std::string_view(stop).substr(0, length))) --length;
    kept = std::max(kept, length);
  }
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() {
  return std::exchange(held_, "");
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::span<const std::uint8_t> nothing_excluded;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens in, certain text out: bytes become whole characters, and stop strings are cut.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const GenerateOptions& options, const TextCallback& on_text)
      : tokenizer_(tokenizer), text_tokens_(options.text_tokens), filter_(options.stop), on_text_(on_text) {}

  void push(std::int32_t token) {
    if (tokenizer_ && is_text(token)) show(filter_.push(utf8_.push(tokenizer_->token_bytes(token))));
  }

  void finish() {
    if (!filter_.stopped()) show(filter_.push(utf8_.finish()));
    show(filter_.finish());
  }

  bool stopped() const { return filter_.stopped(); }
  std::string take_text() { return std::move(text_); }

 private:
  bool is_text(std::int32_t token) const {
    return !tokenizer_->is_special(token) ||
           std::find(text_tokens_.begin(), text_tokens_.end(), token) != text_tokens_.end();
  }

  void show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    on_text_(piece);
  }

  const Tokenizer* tokenizer_;
  const std::vector<std::int32_t>& text_tokens_;
  Utf8Stream utf8_;
  StopFilter filter_;
  const TextCallback& on_text_;
  std::string text_;
};

// A stop string that is a special token never appears in the text; as a token it ends it all the same.
std::vector<std::int32_t> all_end_tokens(const GenerateOptions& options, const Tokenizer* tokenizer) {
  std::vector<std::int32_t> tokens = options.end_tokens;
  for (const std::string& stop : options.stop) {
    const auto id = tokenizer->id_of(stop);
    if (id && tokenizer->is_special(*id)) tokens.push_back(*id);
  }
  return tokens;
}

void check_prompt(std::span<const std::int32_t> prompt, std::size_t vocab_size, const Context& context) {
  if (prompt.empty()) throw Error("the prompt is empty: there is nothing to continue");
  check_tokens(prompt, vocab_size);
  if (prompt.size() > context.capacity()) {
    throw Error(fmt::format("the prompt is {} tokens long but the context holds {}; shorten it or use a larger context",
                            prompt.size(), context.capacity()),
                Setting::context_size);
  }
}

void check_options(const GenerateOptions& options, const Tokenizer* tokenizer) {
  if (tokenizer) return;
  if (!options.stop.empty())
    throw UsageError("a stop string requires a tokenizer, but the model has no tokenizer", Setting::tokenizer);
  if (options.grammar)
    throw UsageError("a grammar requires a tokenizer, but the model has no tokenizer", Setting::tokenizer);
}

TokenText token_text(const Tokenizer* tokenizer) {
  if (!tokenizer) return {};
  return [tokenizer](std::int32_t id) { return tokenizer->token_bytes(id); };
}

// One call of generate().
class Generation {
 public:
  Generation(Forward& forward, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
             const GenerateOptions& options, const TextCallback& on_text, const std::atomic<bool>& interrupted)
      : forward_(forward),
        context_(context),
        options_(options),
        interrupted_(interrupted),
        end_tokens_(all_end_tokens(options, tokenizer)),
        sampler_(options.sampling, forward.model().config.vocab_size, token_text(tokenizer)),
        stream_(tokenizer, options, on_text),
        tokens_(prompt.begin(), prompt.end()),
        prompt_size_(prompt.size()) {
    if (options.drafter) most_drafted_ = options.draft_tokens;
    assert(most_drafted_ < forward.max_tokens());
    const std::size_t vocab_size = forward.model().config.vocab_size;
    logits_.resize((most_drafted_ + 1) * vocab_size);
    for (const std::int32_t token : prompt) sampler_.accept_prompt(token);
    if (options.grammar) constraint_.emplace(options.grammar, *tokenizer, vocab_size, end_tokens_, room());
  }

  Generated run() {
    result_.prompt_tokens_reused = context_.keep_common(tokens_);
    const Clock::time_point start = Clock::now();
    const auto new_to_it = std::span<const std::int32_t>(tokens_).subspan(context_.size());
    prefill(forward_, context_, new_to_it, logits(0), interrupted_);
    result_.prompt_seconds = seconds_since(start);
    result_.prompt_tokens_done = context_.size() - result_.prompt_tokens_reused;

    const Clock::time_point decode_start = Clock::now();
    decode();
    stream_.finish();
    result_.decode_seconds = seconds_since(decode_start);
    result_.tokens.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(prompt_size_), tokens_.end());
    result_.text = stream_.take_text();
    result_.conforms = !constraint_ || constraint_->conforms(result_.text);
    return std::move(result_);
  }

 private:
  std::size_t generated() const { return tokens_.size() - prompt_size_; }

  // How many tokens may still be generated.
  std::size_t room() const { return std::min(options_.max_tokens - generated(), context_.capacity() - tokens_.size()); }

  std::span<float> logits(std::size_t row) {
    const std::size_t vocab_size = forward_.model().config.vocab_size;
    return std::span(logits_).subspan(row * vocab_size, vocab_size);
  }

  // The logits of the last token are there when it begins.
  void decode() {
    while (draw_row_by_row()) {
      draft();
      run_last_and_drafts();
    }
  }

  // Draws a token from each row of logits, for as long as it is the one that the next row has been computed after.
  // Whether the text continues.
  bool draw_row_by_row() {
    std::size_t accepted = 0;
    bool goes_on = draw(logits(0));
    while (goes_on && accepted < drafts_.size() && tokens_.back() == drafts_[accepted]) {
      ++accepted;
      goes_on = draw(logits(accepted));
    }
    context_.rewind(context_.size() - (drafts_.size() - accepted));
    result_.accepted += accepted;
    return goes_on;
  }

  // Whether the text continues after the token sampled, if any.
  bool draw(std::span<const float> logits) {
    if (room() == 0) return false;  // which is FinishReason::length
    if (interrupted_) return finish(FinishReason::interrupted);
    if (constraint_ && constraint_->finished()) return finish(FinishReason::stop);
    const std::int32_t token = sampler_.sample(logits, constraint_ ? constraint_->allowed() : nothing_excluded);
    sampler_.accept(token);
    tokens_.push_back(token);
    if (std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end()) {
      return finish(FinishReason::stop);
    }
    stream_.push(token);
    if (constraint_) constraint_->accept(token, room());
    if (stream_.stopped() || (constraint_ && constraint_->finished())) return finish(FinishReason::stop);
    return room() > 0;
  }

  bool finish(FinishReason reason) {
    result_.finish_reason = reason;
    return false;
  }

  // As many as can be sampled after the last token, except the one that is sampled after them all.
  void draft() {
    const std::size_t most = std::min(most_drafted_, room() - 1);
    drafts_ = most > 0 ? options_.drafter->draft(tokens_, most, interrupted_) : std::span<const std::int32_t>();
    result_.drafted += drafts_.size();
  }

  void run_last_and_drafts() {
    batch_.assign(1, tokens_.back());
    batch_.insert(batch_.end(), drafts_.begin(), drafts_.end());
    forward_.run(context_, batch_, {logits_.data(), batch_.size(), forward_.model().config.vocab_size});
  }

  Forward& forward_;
  Context& context_;
  const GenerateOptions& options_;
  const std::atomic<bool>& interrupted_;
  std::vector<std::int32_t> end_tokens_;
  Sampler sampler_;
  TextStream stream_;
  std::vector<std::int32_t> tokens_;  // prompt and generated
  std::size_t prompt_size_;
  std::optional<GrammarConstraint> constraint_;
  std::size_t most_drafted_ = 0;
  std::span<const std::int32_t> drafts_;  // after the last token of the text
  std::vector<std::int32_t> batch_;       // the last token and the drafts
  std::vector<float> logits_;             // [most_drafted + 1, vocab], of the batch
  Generated result_;
};

}  // namespace

Generated generate(Forward& forward, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
                   const GenerateOptions& options, const TextCallback& on_text, const std::atomic<bool>& interrupted) {
  check_prompt(prompt, forward.model().config.vocab_size, context);
  check_options(options, tokenizer);
  return Generation(forward, context, tokenizer, prompt, options, on_text, interrupted).run();
}

}  // namespace minimind
