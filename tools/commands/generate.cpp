#include "runtime/generate/generate.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/options/command_line.h"
#include "tools/options/generation_options.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/profiling.h"
#include "tools/options/prompt_options.h"
#include "tools/options/speculation_options.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

struct GenerateCommand : GenerationArguments {
  PromptOptions prompt;
  SpeculationArguments speculation;
  bool json = false;
};

void print_json(const std::vector<std::int32_t>& prompt, const Generated& result, const GenerateOptions& options,
                bool has_text, double load_seconds) {
  nlohmann::ordered_json json{
      {"prompt_tokens", prompt},
      {"tokens", result.tokens},
      {"text", has_text ? nlohmann::ordered_json(result.text) : nlohmann::ordered_json(nullptr)},
      {"finish_reason", name_of(result.finish_reason)},
      {"timings",
       {{"load_seconds", load_seconds},
        {"prompt_seconds", result.prompt_seconds},
        {"prompt_tokens_per_second", per_second(result.prompt_tokens_done, result.prompt_seconds)},
        {"decode_seconds", result.decode_seconds},
        {"decode_tokens_per_second", per_second(result.decoded_tokens(), result.decode_seconds)}}}};
  if (options.constraint) json["conforms"] = result.conforms;
  if (options.drafter) {
    json["speculation"] = speculation_json(result.drafted, result.accepted);
  }
  print_output("{}\n", dump_json(json));
}

// Returns why the text ended before the grammar was complete.
std::string_view cut_short_by(const Generated& result, std::size_t max_tokens) {
  switch (result.finish_reason) {
    case FinishReason::stop:
      return "--stop";
    case FinishReason::length:
      return result.tokens.size() == max_tokens ? "--max-tokens" : "--ctx-size";
    case FinishReason::interrupted:
      break;
  }
  return translated("an interrupt");
}

void print_summary(const Generated& result, const GenerateOptions& options) {
  const std::string_view by_itself = translated(options.stop.empty() ? "the model" : "the model or --stop");
  note("prompt: {} at {:.0f}/s; generated: {} at {:.0f}/s; ended by {}",
       counted(result.prompt_tokens_done, "{} token", "{} tokens"),
       per_second(result.prompt_tokens_done, result.prompt_seconds),
       counted(result.tokens.size(), "{} token", "{} tokens"),
       per_second(result.decoded_tokens(), result.decode_seconds),
       result.finish_reason == FinishReason::stop ? by_itself : cut_short_by(result, options.max_tokens));
  if (options.drafter) note("speculation: {}", describe_drafts(result));
}

// Prints the results that were not shown during generation.
void print_result(const GenerateCommand& command, const std::vector<std::int32_t>& prompt, const Generated& result,
                  const GenerateOptions& options, bool has_text, double load_seconds) {
  if (command.json) {
    print_json(prompt, result, options, has_text, load_seconds);
  } else if (!has_text) {
    print_output("{}\n", fmt::join(result.tokens, ","));
  } else if (isatty(STDOUT_FILENO) && !result.text.ends_with('\n')) {
    print_output("\n");
  }
  flush_output();
  if (!result.conforms && !command.run.quiet) {
    note("ended by {} before the grammar was complete", cut_short_by(result, options.max_tokens));
  }
}

int run_generate(const GenerateCommand& options) {
  const auto start = std::chrono::steady_clock::now();
  const GenerationParameters parameters = options.sampling.parameters();
  options.prompt.check();
  options.speculation.check();
  const std::shared_ptr<const Grammar> grammar = options.sampling.grammar(options.run.quiet);
  const bool profiling = profile_requested();
  const LLM llm = load_llm(options, {.requires_tokenizer = !options.prompt.tokens});
  const std::vector<std::int32_t> prompt = options.prompt.read(llm.tokenizer_or_null(), options.run.quiet);
  if (!parameters.ignore_eos && !options.run.quiet) print_assumed_end(llm);
  GenerateOptions generate_options = llm.generate_options(parameters, false, grammar);
  Context context = llm.context(std::min(llm.positions, prompt.size() + parameters.max_tokens));
  const Speculation speculation(options.speculation, llm, context.capacity(), options.run);
  speculation.speed_up(generate_options);
  Forward forward = llm.forward(std::max(prompt.size(), speculation.draft_tokens() + 1), context.capacity());
  std::optional<Profile> profile;
  if (profiling) forward.set_profile(&profile.emplace(llm.threads));
  const std::chrono::duration<double> load_time = std::chrono::steady_clock::now() - start;

  if (!options.sampling.given.seed && parameters.sampling.temperature > 0 && !options.run.quiet) {
    note("seed {}", *parameters.seed);
  }

  const TextCallback show = [&](std::string_view text) {
    if (options.json) return;
    write_output(text);
  };
  const WatchedInterrupts interrupts;
  const Generated result =
      generate(forward, context, llm.tokenizer_or_null(), prompt, generate_options, show, interrupts.flag());
  print_result(options, prompt, result, generate_options, llm.tokenizer.has_value(), load_time.count());
  if (profile) print_profile(*profile);
  const bool interrupted = result.finish_reason == FinishReason::interrupted;
  if (!options.run.quiet && (isatty(STDERR_FILENO) || interrupted)) print_summary(result, generate_options);
  return interrupted ? interrupted_status() : 0;
}

}  // namespace

Command add_generate(CommandOptions& command) {
  auto options = std::make_shared<GenerateCommand>();
  options->add_to(command, 0);
  options->prompt.add_to(command);
  options->speculation.add_to(command);
  options->sampling.add_ends_to(command);
  command.add_flag("--json", options->json, output_group,
                   bilingual("print one JSON object at the end", "结束时输出一个 JSON 对象"));
  return [options] { return run_generate(*options); };
}

}  // namespace minimind
