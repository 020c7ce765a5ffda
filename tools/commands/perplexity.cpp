#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tools/commands/score_tokens.h"
#include "tools/commands/scored_texts.h"
#include "tools/commands/statistics.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct PerplexityOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  TextOptions text;
  TokenOptions tokens;
  bool jsonl = false;
  bool all_turns = false;
  std::string tokenizer;
  std::optional<std::string> against;
  std::optional<std::size_t> window, stride;
  bool json = false;
};

// The score of the chosen or of the rejected answers.
struct GroupScore {
  std::size_t tokens = 0;
  double nats = 0;

  double per_token() const { return nats / static_cast<double>(tokens); }
};

// The KL of the texts, or of the windows if there are too few texts for an interval. Each window has its own context,
// but the KL of the tokens of one text depend on each other.
struct KlGroups {
  std::vector<GroupSum> sums;
  bool are_texts = true;
};

// The result to print.
struct Result {
  TokenScores scores;
  GroupScore chosen, rejected;       // of DPO data; without tokens if there is none
  std::size_t tokens;                // that should be scored
  std::optional<std::size_t> bytes;  // of the text of the scored tokens; std::nullopt if unknown
  WindowSize windows;
  std::optional<std::string> against;
  KlGroups kl_groups;  // without a second model none

  bool complete() const { return scores.tokens == tokens; }
  double per_token(double sum) const { return sum / static_cast<double>(scores.tokens); }
  std::optional<double> bits_per_byte(double nats) const {
    if (!bytes) return std::nullopt;
    return nats / std::numbers::ln2 / static_cast<double>(*bytes);
  }
  double mean_kl() const { return per_token(std::accumulate(scores.kl.begin(), scores.kl.end(), 0.0)); }
};

// Checks the options before anything is loaded.
void check_call(const PerplexityOptions& options) {
  if (options.tokens.given && (options.text.given() || options.jsonl))
    throw UsageError("the input is given twice, as text and as token ids; give one of them");
  if (options.all_turns && !options.jsonl) throw UsageError("--all-turns is for --jsonl; omit it or give both");
}

// The defaults depend on the model with the fewest positions.
WindowSize choose_windows(const PerplexityOptions& options, const LLM& model, const LLM* against,
                          const ScoredTexts& texts) {
  const std::size_t positions =
      std::min(model.config.max_position_embeddings, against ? against->config.max_position_embeddings : SIZE_MAX);
  const WindowSize usual = usual_windows(texts, positions);
  const std::size_t size = options.window.value_or(usual.size);
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

// Throws Error if an id is different tokens in the two tokenizers.
void check_same_tokens(const Tokenizer& model, const Tokenizer& against, const std::string& against_path) {
  const auto ids = static_cast<std::int32_t>(std::min(model.vocab_size(), against.vocab_size()));
  for (std::int32_t id = 0; id < ids; ++id) {
    if (!model.has(id) || !against.has(id) || model.token_text(id) == against.token_text(id)) continue;
    throw Error(
        fmt::format("--against {}: token {} is {}, expected {} as in the model; name a checkpoint with the same "
                    "tokenizer",
                    against_path, id, quote(against.token_text(id)), quote(model.token_text(id))));
  }
}

LLM load_against(const PerplexityOptions& options, const LLM& model, const std::optional<Tokenizer>& tokenizer) {
  CheckpointOptions checkpoint;
  checkpoint.model = *options.against;
  LLM llm = load_llm(checkpoint, options.run.as_stored());
  const std::size_t vocab_size = model.config.vocab_size;
  if (llm.config.vocab_size != vocab_size) {
    throw Error(fmt::format("--against {}: has a vocabulary of {} tokens, expected {} as in {}",
                            model_path(*options.against), llm.config.vocab_size, vocab_size,
                            model_path(options.checkpoint.model)));
  }
  const auto its_tokenizer = optional_tokenizer("", *options.against);
  if (tokenizer && its_tokenizer) check_same_tokens(*tokenizer, *its_tokenizer, *options.against);
  return llm;
}

// `data` is that of the tokenizer unless token ids are given.
ScoredTexts read_texts(const PerplexityOptions& options, const std::optional<TokenizerData>& data,
                       const std::optional<Tokenizer>& tokenizer, Family family) {
  ScoredTexts texts;
  if (!options.jsonl) {
    add_text(texts, options.tokens.given ? options.tokens.read() : tokenizer->encode(options.text.read()), "the text");
    return texts;
  }
  std::optional<FoundTemplate> found;
  const auto its_template = [&]() -> const ChatTemplate& {
    if (!found) {
      found.emplace(template_or_family("", *data, family));
      if (!options.run.quiet) print_template_note(found->source, family);
    }
    return found->chat_template;
  };
  texts = read_lines(options.text.read(), options.text.file, *tokenizer,
                     {family, options.all_turns, its_template, "; --all-turns scores all turns"});
  if (options.all_turns && !texts.conversations) {
    throw UsageError("--all-turns is for conversations, but the input has none; omit it");
  }
  return texts;
}

// Calls use(i) with the index of each of the first `count` tokens scored.
template <class Use>
void for_each_scored(const ScoredTexts& texts, const std::vector<Window>& windows, std::size_t count, Use use) {
  for (const Window& window : windows) {
    for (std::size_t i = window.first_scored; i < window.end && count > 0; ++i) {
      if (texts.uses[i] == TokenUse::read) continue;
      use(i);
      --count;
    }
  }
}

// Returns the bytes of the text of the first `count` scored tokens; std::nullopt if a token has no text.
std::optional<std::size_t> bytes_of(const ScoredTexts& texts, const std::vector<Window>& windows, std::size_t count,
                                    const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return std::nullopt;
  std::size_t bytes = 0;
  bool known = true;
  for_each_scored(texts, windows, count, [&](std::size_t i) {
    const std::string_view token = tokenizer->token_bytes(texts.tokens[i]);
    known = known && !token.empty();
    bytes += token.size();
  });
  return known ? std::optional(bytes) : std::nullopt;
}

GroupScore score_of(TokenUse use, const ScoredTexts& texts, const std::vector<Window>& windows,
                    const TokenScores& scores) {
  GroupScore group;
  std::size_t scored = 0;
  for_each_scored(texts, windows, scores.tokens, [&](std::size_t i) {
    const double nats = scores.each_nats[scored++];
    if (texts.uses[i] != use) return;
    group.nats += nats;
    ++group.tokens;
  });
  return group;
}

KlGroups kl_groups_of(const ScoredTexts& texts, const std::vector<Window>& windows, const TokenScores& scores) {
  KlGroups groups{{}, texts.ends.size() >= fewest_groups};
  groups.sums.resize(groups.are_texts ? texts.ends.size() : windows.size());
  std::size_t scored = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto text = std::upper_bound(texts.ends.begin(), texts.ends.end(), windows[w].begin);
    GroupSum& group = groups.sums[groups.are_texts ? static_cast<std::size_t>(text - texts.ends.begin()) : w];
    for_each_scored(texts, {windows[w]}, scores.tokens - scored, [&](std::size_t) {
      group.sum += scores.kl[scored++];
      ++group.count;
    });
  }
  return groups;
}

OrderedJson scores_json(const Result& result, double nats) {
  const auto bits = result.bits_per_byte(nats);
  return {{"nats_per_token", result.per_token(nats)},
          {"perplexity", std::exp(result.per_token(nats))},
          {"bits_per_byte", bits ? OrderedJson(*bits) : OrderedJson(nullptr)}};
}

void print_json(const Result& result) {
  const TokenScores& scores = result.scores;
  OrderedJson json{{"tokens", scores.tokens},
                   {"bytes", result.bytes ? OrderedJson(*result.bytes) : OrderedJson(nullptr)},
                   {"complete", result.complete()},
                   {"ctx_size", result.windows.size},
                   {"stride", result.windows.stride}};
  json.update(scores_json(result, scores.nats));
  for (const auto& [name, group] : {std::pair("chosen", result.chosen), {"rejected", result.rejected}}) {
    if (group.tokens == 0) continue;
    json[name] = {
        {"tokens", group.tokens}, {"nats_per_token", group.per_token()}, {"perplexity", std::exp(group.per_token())}};
  }
  if (result.against) {
    OrderedJson& against = json["against"] = {{"path", *result.against}};
    against.update(scores_json(result, scores.against_nats));
    against["mean_kl"] = result.mean_kl();
    const auto interval = interval_of_mean(result.kl_groups.sums);
    against["mean_kl_95"] = interval ? OrderedJson{interval->low, interval->high} : OrderedJson(nullptr);
    against["mean_kl_95_groups"] = {{"are", result.kl_groups.are_texts ? "texts" : "windows"},
                                    {"count", result.kl_groups.sums.size()}};
    against["kl_99th_percentile"] = quantile(scores.kl, 0.99);
    against["top1_agreement"] = result.per_token(static_cast<double>(scores.agreeing));
    against["top1_agreeing"] = scores.agreeing;
  }
  print_output("{}\n", dump_json(json, -1, InvalidUtf8::replace));
}

void print_scores(const Result& result, double nats) {
  print_output("nats per token      {:.6f}\n", result.per_token(nats));
  print_output("perplexity          {:.4f}\n", std::exp(result.per_token(nats)));
  if (const auto bits = result.bits_per_byte(nats)) {
    print_output("bits per byte       {:.6f}, of the {} bytes of those tokens\n", *bits, *result.bytes);
  }
}

void print_text(const Result& result) {
  const TokenScores& scores = result.scores;
  if (!result.complete()) print_output("partial: {} of {} tokens\n", scores.tokens, result.tokens);
  print_output("tokens scored       {}, in windows of {}, one every {}\n", scores.tokens, result.windows.size,
               result.windows.stride);
  print_scores(result, scores.nats);
  for (const auto& [name, group] : {std::pair("chosen", result.chosen), {"rejected", result.rejected}}) {
    if (group.tokens == 0) continue;
    print_output("{:<18}  {} tokens, {:.6f} nats per token, perplexity {:.4f}\n", name, group.tokens, group.per_token(),
                 std::exp(group.per_token()));
  }
  if (!result.against) return;
  print_output("\nagainst {}\n", *result.against);
  print_scores(result, scores.against_nats);
  print_output("mean KL             {:.6g} nats per token, KL(against || model)\n", result.mean_kl());
  if (const auto interval = interval_of_mean(result.kl_groups.sums)) {
    print_output("95 % interval       {:.6g} to {:.6g}, from {} {} as independent observations\n", interval->low,
                 interval->high, result.kl_groups.sums.size(), result.kl_groups.are_texts ? "texts" : "windows");
  } else {
    print_output("95 % interval       unknown: requires at least {} texts or windows\n", fewest_groups);
  }
  print_output("99th percentile KL  {:.6g} nats\n", quantile(scores.kl, 0.99));
  print_output("top-1 agreement     {:.2f} %, {} of {}\n", 100 * result.per_token(static_cast<double>(scores.agreeing)),
               scores.agreeing, scores.tokens);
}

int run_perplexity(const PerplexityOptions& options) {
  check_call(options);
  const LLM model = load_llm(options.checkpoint, options.run);
  std::optional<TokenizerData> data;
  if (!options.tokens.given) {
    data = read_tokenizer(require_tokenizer_path(options.tokenizer, options.checkpoint.model));
  }
  const auto tokenizer =
      data ? std::optional<Tokenizer>(*data) : optional_tokenizer(options.tokenizer, options.checkpoint.model);
  if (tokenizer && !options.run.quiet) note(tokenizer_facts(*tokenizer, model.config));
  std::optional<LLM> against;
  if (options.against) against.emplace(load_against(options, model, tokenizer));
  const LLM* second = against ? &*against : nullptr;
  const ScoredTexts texts = read_texts(options, data, tokenizer, model.config.family);
  const WindowSize size = choose_windows(options, model, second, texts);
  const std::vector<Window> windows = windows_over(texts, size);
  const std::vector<bool> scored = are_scored(texts);
  const TokenScores scores = score_tokens(model, second, texts.tokens, windows, scored);
  const Result result{scores,
                      score_of(TokenUse::chosen, texts, windows, scores),
                      score_of(TokenUse::rejected, texts, windows, scores),
                      scored_tokens(windows, scored),
                      bytes_of(texts, windows, scores.tokens, tokenizer),
                      size,
                      options.against,
                      against ? kl_groups_of(texts, windows, scores) : KlGroups{}};
  if (!result.complete()) note("interrupted after {} of {} tokens", scores.tokens, result.tokens);
  if (scores.tokens > 0) options.json ? print_json(result) : print_text(result);
  return result.complete() ? 0 : interrupted_status();
}

}  // namespace

Command add_perplexity(CommandOptions& command) {
  auto options = std::make_shared<PerplexityOptions>();
  options->checkpoint.add_to(command);
  add_tokenizer(command, options->tokenizer);
  options->text.add_to(command);
  command.add_flag(
      "--jsonl", options->jsonl, prompt_group,
      bilingual("one JSON value per line, each scored on its own: a string; {\"prompt\": ..., \"text\": ...}, of "
                "which only the text is scored; or MiniMind's data, {\"text\": ...}, {\"conversations\": [...]} or "
                "{\"chosen\": [...], \"rejected\": [...]}, of which only the assistant's turns are scored",
                "每行一个 JSON，分别评分：字符串；{\"prompt\": ..., \"text\": ...}，只对 text 评分；或 MiniMind "
                "的数据：{\"text\": ...}、{\"conversations\": [...]}、{\"chosen\": [...], \"rejected\": "
                "[...]}，只对助手的回答评分"));
  command.add_flag("--all-turns", options->all_turns, prompt_group,
                   bilingual("score every turn of a conversation", "对对话的每一轮评分"));
  options->tokens.add_to(command);
  command
      .add_option(
          "-c,--ctx-size", options->window, model_group, "N",
          bilingual(
              "window size in tokens; each window has a separate context (default: 512, or the model's if smaller; "
              "MiniMind's data whole)",
              "窗口长度，以词元计；每个窗口的上下文独立（默认：512，模型更短时取模型的长度；MiniMind 的数据取整条）"))
      ->transform(whole_number(2, largest_whole));
  command
      .add_option(
          "--stride", options->stride, prompt_group, "N",
          bilingual(
              "tokens from the start of one window to the next; only new tokens are scored (default: half a window)",
              "相邻窗口起点的间隔，以词元计；只对新词元评分（默认：半个窗口）"))
      ->transform(whole_number(1, largest_whole));
  command.add_option(
      "--against", options->against, common_group, "MODEL",
      bilingual("second checkpoint, run as stored without --lora, --type, --compute and --config; prints its "
                "perplexity, KL(against || model) with the 95 % interval of its mean, and top-1 agreement",
                "第二个检查点，按文件原样运行，不受 --lora、--type、--compute、--config "
                "影响；输出其困惑度、KL(against || model) 及其均值的 95 % 置信区间，和 top-1 一致率"));
  add_json(command, options->json);
  options->run.add_to(command);
  return [options] { return run_perplexity(*options); };
}

}  // namespace minimind
