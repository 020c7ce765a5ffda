#include "runtime/generate/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {

TokenScore score_token(std::span<const float> logits, std::int32_t token, std::size_t top) {
  check_finite(logits);
  top = std::min(top, logits.size());
  LargeValues large_values;
  const std::span<const std::size_t> large = large_values.find(logits, std::max<std::size_t>(top, 1));
  std::vector<std::int32_t> ids(large.begin(), large.end());
  std::ranges::sort(ids, {}, [&](std::int32_t id) { return std::pair(-logits[static_cast<std::size_t>(id)], id); });
  const double largest = logits[static_cast<std::size_t>(ids.front())];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = std::log(sum);
  const auto scored = [&](std::int32_t id) {
    return ScoredToken{id, logits[static_cast<std::size_t>(id)] - largest - log_sum};
  };
  TokenScore score{.token = scored(token), .top = {}};
  const auto place = logits.begin() + token;  // of equals, those before it come first
  score.rank +=
      static_cast<std::size_t>(std::count_if(logits.begin(), place, [&](float other) { return other >= *place; }) +
                               std::count_if(place, logits.end(), [&](float other) { return other > *place; }));
  ids.resize(top);
  std::ranges::transform(ids, std::back_inserter(score.top), scored);
  return score;
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

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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
                Setting::context);
  }
}

void check_options(const GenerateOptions& options, const Tokenizer* tokenizer) {
  if (tokenizer || (options.stop.empty() && !options.constraint)) return;
  const char* const what = options.stop.empty() ? "grammar" : "stop string";
  throw UsageError(fmt::format("a {} requires a tokenizer, but the model has no tokenizer", what), Setting::tokenizer);
}

}  // namespace

TextStream::TextStream(const Tokenizer* tokenizer, const GenerateOptions& options, TextCallback on_text)
    : tokenizer_(tokenizer), text_tokens_(options.text_tokens), filter_(options.stop), on_text_(std::move(on_text)) {}

void TextStream::push(std::int32_t token) {
  if (!tokenizer_ || (tokenizer_->is_special(token) && std::ranges::count(text_tokens_, token) == 0)) return;
  show(filter_.push(utf8_.push(tokenizer_->token_bytes(token))));
}

void TextStream::finish() {
  if (!filter_.stopped()) show(filter_.push(utf8_.finish()));
  show(filter_.finish());
}

void TextStream::show(const std::string& piece) {
  if (piece.empty()) return;
  text_ += piece;
  on_text_(piece);
}

Generation::Generation(const Model& model, Context& context, const Tokenizer* tokenizer,
                       std::span<const std::int32_t> prompt, const GenerateOptions& options, TextCallback on_text,
                       const std::atomic<bool>& interrupted)
    : context_(context), options_(options), interrupted_(interrupted), start_(Clock::now()) {
  const std::size_t vocab_size = model.config.vocab_size;
  check_prompt(prompt, vocab_size, context);
  check_options(options, tokenizer);
  end_tokens_ = all_end_tokens(options, tokenizer);
  sampler_.emplace(options.sampling, vocab_size);
  dry_ = options.penalties ? options.penalties->copy() : nullptr;
  if (!dry_ && options.sampling.dry.on()) dry_ = make_dry(options.sampling.dry, tokenizer, vocab_size);
  stream_.emplace(tokenizer, options, std::move(on_text));
  tokens_.assign(prompt.begin(), prompt.end());
  prompt_size_ = prompt.size();
  for (const std::int32_t token : prompt) {
    sampler_->accept(token, false);
    if (dry_ && !options.penalties) dry_->accept(token);
  }
  if (options.constraint) constraint_ = options.constraint({*tokenizer, vocab_size, end_tokens_, room()});
  context_.rewind(scores_prompt() ? 0 : context_.common_prefix(tokens_));
  result_.prompt_tokens_reused = context_.size();
}

bool Generation::prepare() {
  if (!constraint_ || ended_) return true;
  prepared_ = constraint_->prepare();
  if (!prepared_) return false;
  const bool finished = constraint_->finished();
  if (!in_prompt() && (finished || room() == 0)) end(finished ? FinishReason::stop : FinishReason::length);
  return true;
}

bool Generation::ended() {
  if (!ended_ && interrupted_) end(room() == 0 ? FinishReason::length : FinishReason::interrupted);
  return ended_;
}

Piece Generation::next(std::size_t most) {
  if (in_prompt()) {
    const std::size_t left = prompt_size_ - context_.size(), count = std::min(most, left);
    const auto tokens = std::span<const std::int32_t>(tokens_).subspan(context_.size(), count);
    const std::size_t last_row = count == left ? 1 : 0;
    return {&context_, tokens, scores_prompt() ? count : last_row};
  }
  draft(most - 1);
  batch_.assign(1, tokens_.back());
  batch_.insert(batch_.end(), drafts_.begin(), drafts_.end());
  return {&context_, batch_, batch_.size()};
}

void Generation::take(Matrix<const float> logits) {
  if (scores_prompt() && tokens_.size() == prompt_size_) logits = score_prompt(logits);
  if (logits.rows == 0) return;
  if (tokens_.size() == prompt_size_ && drafts_.empty()) {
    result_.prompt_seconds = seconds_since(start_);
    decode_start_ = Clock::now();
  }
  sample_row_by_row(logits);
}

Generated Generation::finish() {
  result_.prompt_tokens_done = std::min(prompt_size_, context_.size()) - result_.prompt_tokens_reused;
  if (!decode_start_) result_.prompt_seconds = seconds_since(start_);
  stream_->finish();
  if (decode_start_) result_.decode_seconds = seconds_since(*decode_start_);
  result_.tokens.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(prompt_size_), tokens_.end());
  result_.text = stream_->take_text();
  result_.conforms = !constraint_ || !options_.judges_text || constraint_->conforms(result_.text);
  return std::move(result_);
}

std::size_t Generation::room() const {
  return std::min(options_.max_tokens - (tokens_.size() - prompt_size_), context_.capacity() - tokens_.size());
}

// Scores the tokens that follow the rows of a part of the prompt. Returns the row of its last token, if it is there.
Matrix<const float> Generation::score_prompt(Matrix<const float> logits) {
  const std::size_t first = context_.size() - logits.rows;
  std::size_t row = 0;
  for (; row < logits.rows && first + row + 1 < prompt_size_; ++row) {
    result_.prompt_scores.push_back(
        score_token({logits.row(row), logits.cols}, tokens_[first + row + 1], *options_.scores));
  }
  return {logits.row(row), logits.rows - row, logits.cols};
}

// Samples a token from each row of logits, for as long as it is the one that the next row has been computed after.
void Generation::sample_row_by_row(Matrix<const float> logits) {
  std::size_t accepted = 0;
  bool continues = sample({logits.row(0), logits.cols});
  while (continues && accepted < drafts_.size() && tokens_.back() == drafts_[accepted]) {
    ++accepted;
    continues = sample({logits.row(accepted), logits.cols});
  }
  context_.rewind(context_.size() - (drafts_.size() - accepted));
  result_.accepted += accepted;
  drafts_ = {};
}

// Whether the text continues after the token sampled, if any.
bool Generation::sample(std::span<const float> logits) {
  while (!prepare()) continue;
  if (ended_) return false;
  if (room() == 0) return end(FinishReason::length);
  if (interrupted_) return end(FinishReason::interrupted);
  const std::int32_t token = sampler_->sample(options_.process ? options_.process(tokens_, logits) : logits,
                                              constraint_ ? constraint_->allowed() : std::span<const std::uint8_t>(),
                                              dry_ ? dry_->penalties() : std::span<const LogitBias>());
  sampler_->accept(token);
  if (dry_) dry_->accept(token);
  tokens_.push_back(token);
  if (options_.scores) result_.scores.push_back(score_token(logits, token, *options_.scores));
  if (std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end()) return end(FinishReason::stop);
  stream_->push(token);
  if (constraint_) constraint_->accept(token, room());
  prepared_ = false;
  if (stream_->stopped()) return end(FinishReason::stop);
  if (constraint_ && drafts_.empty()) return true;  // prepare() comes next
  while (!prepare()) continue;
  return !ended_ && (room() > 0 || end(FinishReason::length));
}

bool Generation::end(FinishReason reason) {
  result_.finish_reason = reason;
  ended_ = true;
  return false;
}

// As many as can be sampled after the last token, except the one that is sampled after them all.
void Generation::draft(std::size_t most) {
  most = std::min({most, options_.drafter ? options_.draft_tokens : 0, room() - 1});
  drafts_ = most > 0 ? options_.drafter->draft(tokens_, most, interrupted_) : std::span<const std::int32_t>();
  result_.drafted += drafts_.size();
}

std::vector<std::int32_t> end_tokens(const Config& config, bool eos_was_assumed, const Tokenizer* tokenizer) {
  std::vector<std::int32_t> tokens = config.eos_token_id;
  if (!tokenizer || !tokenizer->eos_id()) return tokens;
  if (eos_was_assumed) tokens.clear();
  tokens.push_back(*tokenizer->eos_id());
  return tokens;
}

Generated generate(Forward& forward, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
                   const GenerateOptions& options, const TextCallback& on_text, const std::atomic<bool>& interrupted) {
  assert(!options.drafter || options.draft_tokens < forward.max_tokens());
  Generation generation(forward.model(), context, tokenizer, prompt, options, on_text, interrupted);
  const std::size_t vocab_size = forward.model().config.vocab_size;
  std::vector<float> logits;
  const Cancellation cancellation(interrupted);
  while (!generation.ended()) {
    try {
      if (!generation.prepare() || generation.ended()) continue;
      const Piece piece = generation.next(forward.max_tokens());
      logits.resize(std::max(logits.size(), piece.logit_rows * vocab_size));
      const Matrix<float> of_piece{logits.data(), piece.logit_rows, vocab_size};
      forward.run(std::span(&piece, 1), of_piece);
      generation.take(as_const(of_piece));
    } catch (const Cancelled&) {  // the text has ended
    }
  }
  return generation.finish();
}

}  // namespace minimind
