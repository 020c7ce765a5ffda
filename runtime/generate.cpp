#include "runtime/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/grammar_constraint.h"
#include "runtime/stop_filter.h"
#include "runtime/utf8.h"
#include "weights/error.h"

namespace minimind {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::span<const std::uint8_t> nothing_excluded;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens in, certain text out: bytes become whole characters, and stop strings are cut.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const std::vector<std::string>& stop, const TextCallback& on_text)
      : tokenizer_(tokenizer), filter_(stop), on_text_(on_text) {}

  void push(std::int32_t token) {
    if (tokenizer_ && !tokenizer_->is_special(token)) show(filter_.push(utf8_.push(tokenizer_->token_bytes(token))));
  }

  void finish() {
    if (!filter_.stopped()) show(filter_.push(utf8_.finish()));
    show(filter_.finish());
  }

  bool stopped() const { return filter_.stopped(); }
  std::string take_text() { return std::move(text_); }

 private:
  void show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    on_text_(piece);
  }

  const Tokenizer* tokenizer_;
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
    throw Error(
        fmt::format("the prompt is {} tokens long but the context holds {}; shorten it or give a larger "
                    "--ctx-size",
                    prompt.size(), context.capacity()));
  }
}

void check_options(const GenerateOptions& options, const Tokenizer* tokenizer) {
  if (tokenizer) return;
  if (!options.stop.empty()) throw UsageError("--stop is about text, but the model has no tokenizer");
  if (options.grammar) throw UsageError("a grammar is about text, but the model has no tokenizer; give --tokenizer");
}

}  // namespace

void check_tokens(std::span<const std::int32_t> tokens, std::size_t vocab_size) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      throw Error(fmt::format("token {} is not in the model's vocabulary of {} (ids 0 to {})", token, vocab_size,
                              vocab_size - 1));
    }
  }
}

void prefill(Forward& forward, Context& context, std::span<const std::int32_t> tokens, std::span<float> logits,
             const std::atomic<bool>& interrupted) {
  for (std::size_t done = 0; done < tokens.size() && !interrupted;) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    const bool last = done + count == tokens.size();
    context.run(forward, tokens.subspan(done, count), Matrix<float>{logits.data(), last ? 1u : 0u, logits.size()});
    done += count;
  }
}

Generated generate(Forward& forward, Context& context, const Tokenizer* tokenizer, std::span<const std::int32_t> prompt,
                   const GenerateOptions& options, const TextCallback& on_text, const std::atomic<bool>& interrupted) {
  const std::size_t vocab_size = forward.model().config.vocab_size;
  check_prompt(prompt, vocab_size, context);
  check_options(options, tokenizer);
  Sampler sampler(options.sampling, vocab_size, tokenizer);
  for (const std::int32_t token : prompt) sampler.accept_prompt(token);
  std::vector<float> logits(vocab_size);
  const std::vector<std::int32_t> end_tokens = all_end_tokens(options, tokenizer);
  std::optional<GrammarConstraint> constraint;
  if (options.grammar) {
    const std::size_t tokens = std::min(options.max_tokens, context.capacity() - prompt.size());
    constraint.emplace(options.grammar, *tokenizer, vocab_size, end_tokens, tokens);
  }
  TextStream stream(tokenizer, options.stop, on_text);
  Generated result;

  result.prompt_tokens_reused = context.keep_common(prompt);
  const Clock::time_point start = Clock::now();
  prefill(forward, context, prompt.subspan(result.prompt_tokens_reused), logits, interrupted);
  result.prompt_seconds = seconds_since(start);
  result.prompt_tokens_done = context.size() - result.prompt_tokens_reused;

  const Clock::time_point decode_start = Clock::now();
  while (result.tokens.size() < options.max_tokens && context.size() < context.capacity()) {
    if (interrupted) {
      result.finish_reason = FinishReason::interrupted;
      break;
    }
    if (constraint && constraint->finished()) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    const std::int32_t token = sampler.sample(logits, constraint ? constraint->allowed() : nothing_excluded);
    sampler.accept(token);
    result.tokens.push_back(token);
    const bool ended = std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
    if (!ended) stream.push(token);
    if (!ended && constraint) {
      constraint->accept(token,
                         std::min(options.max_tokens - result.tokens.size(), context.capacity() - context.size() - 1));
    }
    if (ended || stream.stopped() || (constraint && constraint->finished())) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    if (result.tokens.size() == options.max_tokens || context.size() + 1 == context.capacity()) break;
    context.run(forward, {&token, 1}, Matrix<float>{logits.data(), 1, vocab_size});
  }
  stream.finish();
  result.decode_seconds = seconds_since(decode_start);
  result.text = stream.take_text();
  result.conforms = !constraint || constraint->conforms(result.text);
  return result;
}

}  // namespace minimind
