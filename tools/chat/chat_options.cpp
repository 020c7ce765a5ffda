#include "tools/chat/chat_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include "tools/options/template_options.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::size_t turns_of_messages(std::size_t messages) {
  if (messages % 2 == 0) return messages / 2;
  throw UsageError(fmt::format(
      "--historys is {}, expected an even number; a turn is two messages, a question and its answer", messages));
}

void add_conversation_options(CLI::App& command, ChatOptions& options) {
  command.add_option("--system", options.system, "system message");
  command
      .add_option("--tools", options.tools, "JSON file of the functions that the model may call, in OpenAI's format")
      ->check(not_empty);
  auto* think = command.add_flag_callback(
      "--think", [&options] { options.think = true; }, "let the model think before it answers");
  command
      .add_flag_callback(
          "--no-think", [&options] { options.think = false; }, "disable thinking (default: the template decides)")
      ->excludes(think);
  command.add_flag("--show-thinking", options.show_thinking,
                   "if the output is not a terminal, print all that the model writes, with its tags");
  auto* history =
      command
          .add_option("--history", options.history,
                      "show the model N earlier turns, each a question and its answer (default: all that fit)")
          ->type_name("N")
          ->transform(whole_number(0, 1 << 30));
  command
      .add_option_function<std::size_t>(
          "--historys", [&options](std::size_t messages) { options.history = turns_of_messages(messages); },
          "number of earlier messages, two per turn, as in eval_llm.py (default there: 0)")
      ->type_name("N")
      ->transform(whole_number(0, 1 << 30))
      ->excludes(history);
  command.add_flag("--no-shift", options.no_shift, "fail if the context is full, instead of dropping the oldest turns");
  auto* session = command
                      .add_option("--session", options.session,
                                  "file that keeps the conversation and its KV cache, to continue later")
                      ->check(not_empty);
  command.add_option("--load", options.load, "continue a conversation saved as JSON")
      ->check(not_empty)
      ->excludes(session);
  command.add_option("--save", options.save, "save the conversation as JSON at the end")->check(not_empty);
}

void add_input_options(CLI::App& command, ChatOptions& options) {
  options.text.add_to(command);
  command.add_flag("--turns", options.turns, "each line of the text is a message or a /command");
  command.add_flag("--tool-result", options.tool_result, "the text is the result of the called tool");
  command.add_flag("--json", options.json, "print each answer as one line of JSON");
}

}  // namespace

void ChatOptions::add_to(CLI::App& command) {
  GenerationArguments::add_to(command, "at most N tokens per answer");
  add_template(command, chat_template);
  add_plain_content(command, plain_content);
  add_input_options(command, *this);
  add_conversation_options(command, *this);
  speculation.add_to(command);
  end.add_to(command);
}

bool ChatOptions::interactive() const {
  const bool has_text = text.has_prompt || !text.file.empty();
  return isatty(STDIN_FILENO) && !has_text && !turns && !tool_result && !json;
}

void ChatOptions::check() const {
  end.check();
  if (turns && text.has_prompt && text.prompt.empty())
    throw UsageError("--prompt is empty, expected lines for --turns");
  if (!session.empty() && !save.empty()) require_two_files("--session", session, "--save", save);
  if (turns && tool_result)
    throw UsageError("--tool-result does not go with --turns; give results as lines that start with /tool");
  if (tool_result && load.empty() && session.empty()) {
    throw UsageError("--tool-result requires a conversation with a tool call; name it with --load or --session");
  }
  if (show_thinking && json)
    throw UsageError("--json always has the thinking as reasoning_content; omit --show-thinking");
}

}  // namespace minimind
