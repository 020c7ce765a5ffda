#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/generate/generate.h"
#include "runtime/inside/attribution.h"
#include "runtime/inside/recording.h"
#include "tools/options/command_line.h"
#include "tools/options/generation_options.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/prompt_options.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/standard_output.h"
#include "tools/terminal/terminal_text.h"
#include "tools/terminal/text_columns.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t columns = 80;

struct ExplainOptions : GenerationArguments {
  PromptOptions prompt;
  std::size_t top = 3;
  bool json = false;

  ExplainOptions() { sampling.given.max_tokens = 4; }
};

// A text with the accounts of its generated tokens.
struct Explained {
  std::vector<std::int32_t> tokens;
  std::size_t prompt_size;
  std::vector<TokenAccount> accounts;
};

// A token as a reader sees it: its text, or its id if it has no text of its own, as the bytes of a rare character.
std::string shown(const Tokenizer* tokenizer, std::int32_t token) {
  if (!tokenizer) return fmt::format("#{}", token);
  const std::int32_t one[] = {token};
  const std::string text = tokenizer->decode(one, false);
  const bool is_part = text.empty() || text.find("\uFFFD") != std::string::npos;
  return is_part ? fmt::format("#{}", token) : quote(terminal_line(text));
}

class Explanation {
 public:
  Explanation(const Explained& explained, const Tokenizer* tokenizer) : explained_(explained), tokenizer_(tokenizer) {}

  void print() const {
    for (const TokenAccount& account : explained_.accounts) print(account);
  }

  OrderedJson json() const {
    OrderedJson all = OrderedJson::array();
    for (const TokenAccount& account : explained_.accounts) all.push_back(json(account));
    const std::span<const std::int32_t> tokens(explained_.tokens);
    const auto ids = [](std::span<const std::int32_t> part) {
      return std::vector<std::int32_t>(part.begin(), part.end());
    };
    return {{"prompt_tokens", ids(tokens.first(explained_.prompt_size))},
            {"tokens", ids(tokens.subspan(explained_.prompt_size))},
            {"explanations", all}};
  }

 private:
  std::string text_of(std::int32_t token) const { return shown(tokenizer_, token); }

  OrderedJson named(std::int32_t token) const {
    OrderedJson json{{"token", token}};
    if (tokenizer_) {
      const std::int32_t one[] = {token};
      json["text"] = tokenizer_->decode(one, false);
    }
    return json;
  }

  OrderedJson named(const LikelyToken& candidate) const {
    OrderedJson json = named(candidate.token);
    json["probability"] = candidate.probability;
    return json;
  }

  static void print_wrapped(const std::string& text, std::size_t indent) {
    print_output("{}\n", wrapped(std::string(indent, ' ') + text, columns, indent + 2));
  }

  void print(const TokenAccount& account) const {
    print_output("{}\n", localized("token {} at position {}: probability {:.3f}, logit {:.3f}", text_of(account.token),
                                   account.position, account.probability, account.logit));
    std::string candidates;
    for (const LikelyToken& each : account.candidates) {
      candidates += fmt::format("{}{} {:.3f}", candidates.empty() ? "" : ", ", text_of(each.token), each.probability);
    }
    print_wrapped(localized("candidates: {}", candidates), 2);
    double attention = 0, feed_forward = 0;
    for (const LayerShare& share : account.layers) {
      attention += share.attention;
      feed_forward += share.feed_forward;
    }
    print_wrapped(localized("the logit: embedding {:+.3f}, attention {:+.3f}, feed-forward {:+.3f}", account.embedding,
                            attention, feed_forward),
                  2);
    constexpr double smallest_shown = 0.0005;
    if (std::abs(account.rest) >= smallest_shown) {
      print_wrapped(localized("the rest of the logit is rounding: {:+.3f}", account.rest), 2);
    }
    for (std::size_t i = 0; i < account.layers.size(); ++i) print(account.layers[i], i);
  }

  void print(const LayerShare& share, std::size_t layer) const {
    print_wrapped(localized("layer {}: attention {:+.3f}, feed-forward {:+.3f}; top token: {} {:.3f}", layer,
                            share.attention, share.feed_forward, text_of(share.lens.token), share.lens.probability),
                  2);
    if (!share.experts.empty()) {
      std::string experts;
      for (const auto& [expert, weight] : share.experts) {
        experts += fmt::format("{}{} {:.3f}", experts.empty() ? "" : ", ", expert, weight);
      }
      print_wrapped(localized("experts: {}", experts), 4);
    }
    for (std::size_t head = 0; head < share.heads.size(); ++head) {
      std::string seen;
      for (const auto& [position, weight] : share.heads[head]) {
        seen += fmt::format("{}{}:{} {:.3f}", seen.empty() ? "" : ", ", position, text_of(explained_.tokens[position]),
                            weight);
      }
      print_wrapped(localized("head {}: {}", head, seen), 4);
    }
  }

  OrderedJson json(const TokenAccount& account) const {
    OrderedJson json = named(account.token);
    json.update(OrderedJson{{"position", account.position},
                            {"probability", account.probability},
                            {"logit", account.logit},
                            {"embedding", account.embedding},
                            {"rest", account.rest},
                            {"candidates", OrderedJson::array()},
                            {"layers", OrderedJson::array()}});
    for (const LikelyToken& each : account.candidates) json["candidates"].push_back(named(each));
    for (const LayerShare& share : account.layers) {
      OrderedJson layer{
          {"attention", share.attention}, {"feed_forward", share.feed_forward}, {"lens", named(share.lens)}};
      if (!share.experts.empty()) layer["experts"] = weighted(share.experts, "expert");
      layer["heads"] = OrderedJson::array();
      for (const auto& head : share.heads) layer["heads"].push_back(weighted(head, "position"));
      json["layers"].push_back(std::move(layer));
    }
    return json;
  }

  static OrderedJson weighted(const std::vector<std::pair<std::size_t, float>>& parts, const char* name) {
    OrderedJson all = OrderedJson::array();
    for (const auto& [index, weight] : parts) all.push_back({{name, index}, {"weight", weight}});
    return all;
  }

  const Explained& explained_;
  const Tokenizer* tokenizer_;
};

// Looks at the whole text in one pass, whose logits are bit for bit those that the text was generated from.
std::vector<TokenAccount> account_for(const LLM& llm, const Explained& explained, std::size_t top) {
  const std::span<const std::int32_t> tokens(explained.tokens);
  Progress progress(std::string(translated("explain")), tokens.size(), ProgressUnit::tokens);
  const Recording recording = record(*llm.model, llm.kernels, llm.kv_type, points_of_accounts(*llm.model),
                                     tokens.first(tokens.size() - 1), [&](std::size_t done) { progress.show(done); });
  return account_for(*llm.model, recording, tokens, explained.prompt_size, top);
}

int run_explain(const ExplainOptions& options) {
  const GenerationParameters parameters = options.sampling.parameters();
  options.prompt.check();
  const std::shared_ptr<const Grammar> grammar = options.sampling.grammar(options.run.quiet);
  const LLM llm = load_llm(options, {.requires_tokenizer = !options.prompt.tokens});
  const std::vector<std::int32_t> prompt = options.prompt.read(llm.tokenizer_or_null(), options.run.quiet);
  if (!parameters.ignore_eos && !options.run.quiet) print_assumed_end(llm);
  const GenerateOptions generate_options = llm.generate_options(parameters, false, grammar);
  if (!options.sampling.given.seed && parameters.sampling.temperature > 0 && !options.run.quiet) {
    note("seed {}", *parameters.seed);
  }
  Explained explained{prompt, prompt.size(), {}};
  {
    Context context = llm.context(std::min(llm.positions, prompt.size() + parameters.max_tokens));
    Forward forward = llm.forward(prompt.size(), context.capacity());
    const std::atomic<bool> never_interrupted = false;  // a signal ends the program
    const Generated result = generate(
        forward, context, llm.tokenizer_or_null(), prompt, generate_options, [](std::string_view) {},
        never_interrupted);
    explained.tokens.insert(explained.tokens.end(), result.tokens.begin(), result.tokens.end());
  }
  if (explained.tokens.size() > prompt.size()) explained.accounts = account_for(llm, explained, options.top);
  const Explanation explanation(explained, llm.tokenizer_or_null());
  if (options.json) {
    print_output("{}\n", dump_json(explanation.json(), -1, InvalidUtf8::replace));
  } else {
    explanation.print();
  }
  return 0;
}

}  // namespace

Command add_explain(CommandOptions& command) {
  auto options = std::make_shared<ExplainOptions>();
  options->add_to(command, 1);
  options->prompt.add_to(command);
  options->sampling.add_ends_to(command);
  command
      .add_option("--top", options->top, output_group, "N",
                  bilingual("show the N likeliest tokens, and the N tokens that each head looked at most",
                            "显示最可能的 N 个词元，以及每个注意力头最关注的 N 个词元"))
      ->capture_default_str()
      ->transform(whole_number(1, 100));
  command.add_flag("--json", options->json, output_group,
                   bilingual("print one JSON object at the end", "结束时输出一个 JSON 对象"));
  return [options] { return run_explain(*options); };
}

}  // namespace minimind
