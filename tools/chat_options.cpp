#include "tools/chat_options.h"

#include <unistd.h>

#include "tools/generation_limits.h"
#include "weights/error.h"

namespace minimind {
namespace {

void add_conversation_options(CLI::App& command, ChatOptions& options) {
  command.add_option("--system", options.system, "a system message");
  command.add_option("--tools", options.tools, "a JSON file of functions the model may call, as OpenAI writes them")
      ->check(not_empty);
  auto* think = command.add_flag_callback(
      "--think", [&options] { options.think = true; }, "let the model think before it answers");
  command
      .add_flag_callback(
          "--no-think", [&options] { options.think = false; },
          "keep it from thinking (default: as the chat template has it)")
      ->excludes(think);
  command.add_flag("--show-thinking", options.show_thinking, "print thoughts even where the output is no terminal");
  command.add_flag("--no-shift", options.no_shift, "fail when the context is full, rather than drop the oldest turns");
  auto* session = command
                      .add_option("--session", options.session,
                                  "a file that keeps the conversation and what was computed for it, to go on later")
                      ->check(not_empty);
  command.add_option("--load", options.load, "go on with a conversation that was saved as JSON")
      ->check(not_empty)
      ->excludes(session);
  command.add_option("--save", options.save, "write the conversation there as JSON at the end")->check(not_empty);
}

void add_input_options(CLI::App& command, ChatOptions& options) {
  options.text.add_to(command);
  command.add_flag("--turns", options.turns, "the text holds a message or /command a line, as at the prompt");
  command.add_flag("--tool-result", options.tool_result, "the text is what the tool that was called returned");
  command.add_flag("--json", options.json, "print each answer as a JSON object on a line");
}

}  // namespace

void ChatOptions::add_to(CLI::App& command) {
  checkpoint.add_to(command);
  command.add_option("--tokenizer", tokenizer, "a tokenizer.json, the folder that holds it, or a .gguf");
  command.add_option("--template", chat_template, "a file with a chat template, in Jinja (default: the checkpoint's)");
  add_input_options(command, *this);
  add_conversation_options(command, *this);
  command.add_option("-n,--max-tokens", max_tokens, "at most so many tokens an answer")
      ->capture_default_str()
      ->transform(whole_number(1, 1 << 30));
  command.add_option("-c,--ctx-size", context, "positions in the context (default: the model's)")
      ->transform(whole_number(1, 1 << 30));
  sampling.add_to(command);
  speculation.add_to(command);
  command.add_option("--stop", stop, "end before this text; may be repeated")->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, "go on past the end of text");
  run.add_to(command);
}

bool ChatOptions::interactive() const {
  const bool has_text = text.has_prompt || !text.file.empty();
  return isatty(STDIN_FILENO) && !has_text && !turns && !tool_result && !json;
}

void ChatOptions::check() const {
  check_stops(stop);
  if (text.has_prompt && text.prompt.empty()) throw UsageError("--prompt is empty");
  if (turns && tool_result) throw UsageError("--turns takes results of tools as lines that begin with /tool");
  if (tool_result && load.empty() && session.empty()) {
    throw UsageError("--tool-result answers a call: name the conversation with --load or --session");
  }
  if (show_thinking && json) throw UsageError("--json has thoughts as reasoning_content, without --show-thinking");
}

}  // namespace minimind
