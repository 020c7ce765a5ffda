#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>

#include "runtime/tokenizer.h"
#include "tools/commands.h"
#include "tools/engine.h"
#include "tools/find_tokenizer.h"
#include "tools/interrupt.h"
#include "tools/lines.h"
#include "tools/note.h"
#include "tools/score_tokens.h"
#include "weights/error.h"
#include "weights/quote.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

struct PerplexityOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  TextOptions text;
  TokenOptions tokens;
  bool has_tokens = false;  // --tokens or --tokens-file instead of a text
  bool jsonl = false;
  std::string tokenizer;
  std::optional<std::string> against;
  std::optional<std::size_t> window, stride;
  bool json = false;
};

struct WindowSize {
  std::size_t size, stride;
};

// Texts as tokens, one after the other.
struct Texts {
  struct Extent {
    std::size_t first_scored, end;  // what lies between the end of the text before and first_scored is only read
  };
  std::vector<std::int32_t> tokens;
  std::vector<Extent> extents;
};

// What is printed, with what it means beside it.
struct Result {
  TokenScores scores;
  std::size_t tokens;                // that were to be scored
  std::optional<std::size_t> bytes;  // of the text of the tokens scored; nothing where it is not known
  WindowSize windows;
  std::optional<std::string> against;

  bool complete() const { return scores.tokens == tokens; }
  double per_token(double sum) const { return sum / static_cast<double>(scores.tokens); }
  std::optional<double> bits_per_byte(double nats) const {
    if (!bytes) return std::nullopt;
    return nats / std::numbers::ln2 / static_cast<double>(*bytes);
  }
  double mean_kl() const { return per_token(std::accumulate(scores.kl.begin(), scores.kl.end(), 0.0)); }
};

// What a call says by itself, told before anything is loaded.
void check_call(const PerplexityOptions& options) {
  const bool has_text = options.text.has_prompt || !options.text.file.empty();
  if (options.has_tokens && (has_text || options.jsonl)) throw UsageError("give either text or token ids");
  if (options.window && *options.window < 2) {
    throw UsageError(fmt::format("--ctx-size {} leaves no token to score, expected at least 2", *options.window));
  }
  if (options.stride && *options.stride == 0)
    throw UsageError("--stride 0 never moves the window, expected at least 1");
}

// The defaults are for the model with the fewest positions.
WindowSize choose_windows(const PerplexityOptions& options, const Engine& model, const Engine* against) {
  constexpr std::size_t usual = 512;
  const std::size_t positions = std::min(model.model.config.max_position_embeddings,
                                         against ? against->model.config.max_position_embeddings : SIZE_MAX);
  const std::size_t size = options.window.value_or(std::clamp<std::size_t>(positions, 2, usual));
  const std::size_t stride = options.stride.value_or(size / 2);
  if (stride > size) {
    throw UsageError(fmt::format("--stride {} would skip tokens between windows of {} (--ctx-size); give at most {}",
                                 stride, size, size));
  }
  if (size > positions && !options.run.quiet) {
    note("windows of {} tokens exceed the model's context of {} positions", size, positions);
  }
  return {size, stride};
}

// Throws Error when an id means one token to one tokenizer and another to the other.
void check_same_tokens(const Tokenizer& model, const Tokenizer& against, const std::string& against_path) {
  const auto ids = static_cast<std::int32_t>(std::min(model.vocab_size(), against.vocab_size()));
  for (std::int32_t id = 0; id < ids; ++id) {
    if (!model.has(id) || !against.has(id) || model.token_text(id) == against.token_text(id)) continue;
    throw Error(fmt::format(
        "--against {}: its tokenizer differs: token {} is {} there and {} for the model, so their "
        "probabilities cannot be compared",
        against_path, id, minimind::quoted(against.token_text(id)), minimind::quoted(model.token_text(id))));
  }
}

Engine load_against(const PerplexityOptions& options, const Engine& model, const std::optional<Tokenizer>& tokenizer) {
  CheckpointOptions checkpoint;
  checkpoint.model = *options.against;
  RunOptions run = options.run;
  run.type.clear();
  Engine engine = load_engine(checkpoint, run);
  const std::size_t vocab_size = model.model.config.vocab_size;
  if (engine.model.config.vocab_size != vocab_size) {
    throw Error(fmt::format("{} has a vocabulary of {} tokens and {} one of {}: their probabilities cannot be compared",
                            model_path(options.checkpoint.model), vocab_size, model_path(*options.against),
                            engine.model.config.vocab_size));
  }
  const auto its_tokenizer = load_tokenizer("", *options.against);
  if (tokenizer && its_tokenizer) check_same_tokens(*tokenizer, *its_tokenizer, *options.against);
  return engine;
}

void add_text(Texts& texts, const std::vector<std::int32_t>& tokens, const std::string& name) {
  if (tokens.size() < 2) {
    throw Error(fmt::format("{} has {} token{}, expected 2 or more: the first one is not scored", name, tokens.size(),
                            tokens.size() == 1 ? "" : "s"));
  }
  const std::size_t begin = texts.tokens.size();
  texts.tokens.insert(texts.tokens.end(), tokens.begin(), tokens.end());
  texts.extents.push_back({begin + 1, texts.tokens.size()});
}

void add_answer(Texts& texts, const std::vector<std::int32_t>& prompt, const std::vector<std::int32_t>& answer,
                const std::string& name) {
  if (prompt.empty() || answer.empty()) {
    throw Error(fmt::format("{} has a {} of 0 tokens, expected 1 or more", name, prompt.empty() ? "prompt" : "text"));
  }
  texts.tokens.insert(texts.tokens.end(), prompt.begin(), prompt.end());
  const std::size_t first_scored = texts.tokens.size();
  texts.tokens.insert(texts.tokens.end(), answer.begin(), answer.end());
  texts.extents.push_back({first_scored, texts.tokens.size()});
}

void add_line(Texts& texts, const std::string& line, const std::string& name, const Tokenizer& tokenizer) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_string()) return add_text(texts, tokenizer.encode(json.get_ref<const std::string&>()), name);
  if (!json.is_object() || json.size() != 2 || !json.contains("prompt") || !json.contains("text") ||
      !json["prompt"].is_string() || !json["text"].is_string()) {
    throw Error(fmt::format("{} is neither a JSON string nor {{\"prompt\": a string, \"text\": a string}}", name));
  }
  add_answer(texts, tokenizer.encode(json["prompt"].get_ref<const std::string&>()),
             tokenizer.encode(json["text"].get_ref<const std::string&>()), name);
}

Texts read_texts(const PerplexityOptions& options, const std::optional<Tokenizer>& tokenizer) {
  Texts texts;
  if (!options.jsonl) {
    add_text(texts, options.has_tokens ? options.tokens.read() : tokenizer->encode(options.text.read()), "the text");
    return texts;
  }
  for_each_line(options.text.read(), [&](const std::string& line, std::size_t number) {
    add_line(texts, line, fmt::format("line {} of the input", number), *tokenizer);
  });
  if (texts.extents.empty()) throw Error("the input has no line");
  return texts;
}

std::vector<Window> windows_over(const Texts& texts, WindowSize size) {
  std::vector<Window> windows;
  std::size_t begin = 0;
  for (const auto& [first_scored, end] : texts.extents) {
    for (Window window : sliding_windows(begin, end, size.size, size.stride)) {
      window.first_scored = std::max(window.first_scored, first_scored);
      if (window.first_scored < window.end) windows.push_back(window);
    }
    begin = end;
  }
  return windows;
}

// Of the text that the first `count` tokens scored stand for; nothing where some have none.
std::optional<std::size_t> bytes_of(const Texts& texts, const std::vector<Window>& windows, std::size_t count,
                                    const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return std::nullopt;
  std::size_t bytes = 0;
  for (const Window& window : windows) {
    for (std::size_t i = window.first_scored; i < window.end && count > 0; ++i, --count) {
      const std::string_view token = tokenizer->token_bytes(texts.tokens[i]);
      if (token.empty()) return std::nullopt;
      bytes += token.size();
    }
  }
  return bytes;
}

Json scores_json(const Result& result, double nats) {
  const auto bits = result.bits_per_byte(nats);
  return {{"nats_per_token", result.per_token(nats)},
          {"perplexity", std::exp(result.per_token(nats))},
          {"bits_per_byte", bits ? Json(*bits) : Json(nullptr)}};
}

void print_json(const Result& result) {
  const TokenScores& scores = result.scores;
  Json json{{"tokens", scores.tokens},
            {"bytes", result.bytes ? Json(*result.bytes) : Json(nullptr)},
            {"complete", result.complete()},
            {"ctx_size", result.windows.size},
            {"stride", result.windows.stride}};
  json.update(scores_json(result, scores.nats));
  if (result.against) {
    Json& against = json["against"] = {{"path", *result.against}};
    against.update(scores_json(result, scores.against_nats));
    against["mean_kl"] = result.mean_kl();
    against["kl_99th_percentile"] = quantile(scores.kl, 0.99);
    against["top1_agreement"] = result.per_token(static_cast<double>(scores.agreeing));
    against["top1_agreeing"] = scores.agreeing;
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void print_scores(const Result& result, double nats) {
  fmt::print("nats per token      {:.6f}\n", result.per_token(nats));
  fmt::print("perplexity          {:.4f}\n", std::exp(result.per_token(nats)));
  if (const auto bits = result.bits_per_byte(nats)) {
    fmt::print("bits per byte       {:.6f}, of the {} bytes of those tokens\n", *bits, *result.bytes);
  }
}

void print_text(const Result& result) {
  const TokenScores& scores = result.scores;
  if (!result.complete()) fmt::print("partial: {} of {} tokens\n", scores.tokens, result.tokens);
  fmt::print("tokens scored       {}, in windows of {}, one every {}\n", scores.tokens, result.windows.size,
             result.windows.stride);
  print_scores(result, scores.nats);
  if (!result.against) return;
  fmt::print("\nagainst {}\n", *result.against);
  print_scores(result, scores.against_nats);
  fmt::print("mean KL             {:.6g} nats per token, KL(against || model)\n", result.mean_kl());
  fmt::print("99th percentile KL  {:.6g} nats\n", quantile(scores.kl, 0.99));
  fmt::print("top-1 agreement     {:.2f} %, {} of {}\n", 100 * result.per_token(static_cast<double>(scores.agreeing)),
             scores.agreeing, scores.tokens);
}

int run_perplexity(const PerplexityOptions& options) {
  check_call(options);
  const Engine model = load_engine(options.checkpoint, options.run);
  const auto tokenizer = options.has_tokens
                             ? load_tokenizer(options.tokenizer, options.checkpoint.model)
                             : std::optional(require_tokenizer(options.tokenizer, options.checkpoint.model));
  std::optional<Engine> against;
  if (options.against) against.emplace(load_against(options, model, tokenizer));
  const Engine* second = against ? &*against : nullptr;
  const WindowSize size = choose_windows(options, model, second);
  const Texts texts = read_texts(options, tokenizer);
  const std::vector<Window> windows = windows_over(texts, size);

  const TokenScores scores = score_tokens(model, second, texts.tokens, windows);
  const Result result{scores, scored_tokens(windows), bytes_of(texts, windows, scores.tokens, tokenizer), size,
                      options.against};
  if (!result.complete()) note("interrupted after {} of {} tokens", scores.tokens, result.tokens);
  if (scores.tokens > 0) options.json ? print_json(result) : print_text(result);
  return result.complete() ? 0 : interrupted_status;
}

}  // namespace

Command add_perplexity(CLI::App& app) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App* command =
      app.add_subcommand("perplexity", "perplexity of a text, used verbatim, and divergence from another model");
  options->checkpoint.add_to(*command);
  command->add_option("--tokenizer", options->tokenizer, "tokenizer.json, its folder, or a .gguf");
  options->text.add_to(*command);
  command->add_flag("--jsonl", options->jsonl,
                    "one JSON value per line: a string, scored on its own, or {\"prompt\": ..., \"text\": ...}, of "
                    "which only the text is scored");
  options->tokens.add_to(*command);
  command
      ->add_option(
          "-c,--ctx-size", options->window,
          "window size in tokens; each window has a separate context (default: 512, or the model's if smaller)")
      ->transform(whole_number(0, 1 << 30));
  command
      ->add_option(
          "--stride", options->stride,
          "tokens from the start of one window to the next; only new tokens are scored (default: half a window)")
      ->transform(whole_number(0, 1 << 30));
  command->add_option("--against", options->against,
                      "second checkpoint, run as stored without --lora, --type and --config; prints its perplexity, "
                      "KL(against || model) and top-1 agreement");
  command->add_flag("--json", options->json, "print one JSON object");
  options->run.add_to(*command);
  return [options, command] {
    options->has_tokens = command->count("--tokens") + command->count("--tokens-file") > 0;
    return run_perplexity(*options);
  };
}

}  // namespace minimind
