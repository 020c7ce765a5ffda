#include "tools/chat_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "tools/generation_limits.h"
#include "weights/error.h"

namespace minimind {
namespace {

std::size_t turns_of_messages(std::size_t messages) {
  if (messages % 2 == 0) return messages / 2;
  throw UsageError(fmt::format(
      "--historys is {}, expected an even number; a turn is two messages, a question and its answer", messages));
}

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
  command.add_flag("--show-thinking", options.show_thinking,
                   "where the output is no terminal, print all that the model writes, with its tags");
  auto* history =
      command
          .add_option("--history", options.history,
                      "how many earlier turns, each a question and what followed it, the model is shown (default: all "
                      "that fit)")
          ->check(CLI::Range(0, 1 << 30));
  command
      .add_option_function<std::size_t>(
          "--historys", [&options](std::size_t messages) { options.history = turns_of_messages(messages); },
          "the same in messages, two a turn, as MiniMind's eval_llm.py counts them (its default is 0)")
      ->check(CLI::Range(0, 1 << 30))
      ->excludes(history);
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

// Neither has to exist.
bool is_one_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code failed;
  return fs::weakly_canonical(fs::absolute(a, failed), failed) == fs::weakly_canonical(fs::absolute(b, failed), failed);
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
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("-c,--ctx-size", context, "positions in the context (default: the model's)")
      ->check(CLI::Range(1, 1 << 30));
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
  if (turns && text.has_prompt && text.prompt.empty())
    throw UsageError("--prompt is empty, expected lines for --turns");
  if (!session.empty() && !save.empty() && is_one_file(session, save)) {
    throw UsageError(fmt::format("--session and --save are both {}; give each a file of its own", session));
  }
  if (turns && tool_result) throw UsageError("--turns takes results of tools as lines that begin with /tool");
  if (tool_result && load.empty() && session.empty()) {
    throw UsageError("--tool-result answers a call: name the conversation with --load or --session");
  }
  if (show_thinking && json) throw UsageError("--json has thoughts as reasoning_content, without --show-thinking");
}

}  // namespace minimind
