#include "tools/chat/chat_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::size_t turns_of_messages(std::size_t messages) {
  if (messages % 2 == 0) return messages / 2;
  throw UsageError(fmt::format(
      "--historys is {}, expected an even number; a turn is two messages, a question and its answer", messages));
}

void add_history_options(CommandOptions& command, ChatOptions& options) {
  auto* history =
      command
          .add_option(
              "--history", options.history, prompt_group, "N",
              bilingual("show the model N earlier turns, each a question and its answer (default: all that fit)",
                        "让模型看到之前的 N 轮对话，一问一答为一轮（默认：放得下的全部）"))
          ->transform(whole_number(0, largest_whole));
  command
      .add_option_function<std::size_t>(
          "--historys", [&options](std::size_t messages) { options.history = turns_of_messages(messages); },
          prompt_group, "N",
          bilingual("number of earlier messages, two per turn, as in eval_llm.py (default there: 0)",
                    "让模型看到之前的 N 条消息，一轮两条，与 eval_llm.py 相同（其默认为 0）"))
      ->transform(whole_number(0, largest_whole))
      ->excludes(history);
  command.add_flag("--no-shift", options.no_shift, prompt_group,
                   bilingual("fail if the context is full, instead of dropping the oldest turns",
                             "上下文已满时报错，不丢弃最早的对话"));
}

void add_conversation_options(CommandOptions& command, ChatOptions& options) {
  command.add_option("--system", options.system, prompt_group, "TEXT", bilingual("system message", "系统消息"));
  command.add_option("--tools", options.tools, prompt_group, "FILE",
                     bilingual("JSON file of the functions that the model may call, in OpenAI's format",
                               "模型可调用的函数，OpenAI 格式的 JSON 文件"));
  auto* think = command.add_flag_callback(
      "--think", [&options] { options.think = true; }, prompt_group,
      bilingual("let the model think before it answers", "先思考再回答"));
  command
      .add_flag_callback(
          "--no-think", [&options] { options.think = false; }, prompt_group,
          bilingual("disable thinking (default: the template decides)", "不思考（默认：由对话模板决定）"))
      ->excludes(think);
  command.add_flag("--show-thinking", options.show_thinking, output_group,
                   bilingual("if the output is not a terminal, print all that the model writes, with its tags",
                             "输出不是终端时，打印模型写出的全部内容，包括标签"));
  auto* session = command.add_option("--session", options.session, prompt_group, "FILE",
                                     bilingual("file that keeps the conversation and its KV cache, to continue later",
                                               "保存对话和 KV 缓存的文件，下次继续"));
  command
      .add_option("--load", options.load, prompt_group, "FILE",
                  bilingual("continue a conversation saved as JSON", "继续以 JSON 保存的对话"))
      ->excludes(session);
  command.add_option("--save", options.save, prompt_group, "FILE",
                     bilingual("save the conversation as JSON at the end", "结束时将对话保存为 JSON"));
}

void add_input_options(CommandOptions& command, ChatOptions& options) {
  options.text.add_to(command);
  command.add_flag("--turns", options.turns, prompt_group,
                   bilingual("each line of the text is a message or a /command", "文本的每一行是一条消息或 /命令"));
  command.add_flag("--tool-result", options.tool_result, prompt_group,
                   bilingual("the text is the result of the called tool", "文本是所调用工具的返回结果"));
  command.add_flag("--json", options.json, output_group,
                   bilingual("print each answer as one line of JSON", "每个回答输出一行 JSON"));
}

}  // namespace

void ChatOptions::add_to(CommandOptions& command) {
  GenerationArguments::add_to(command);
  add_template(command, chat_template);
  add_plain_content(command, plain_content);
  add_input_options(command, *this);
  add_conversation_options(command, *this);
  add_history_options(command, *this);
  speculation.add_to(command);
  sampling.add_ends_to(command);
}

bool ChatOptions::interactive() const {
  return isatty(STDIN_FILENO) && !text.given() && !turns && !tool_result && !json;
}

void ChatOptions::check() const {
  speculation.check();
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
