#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/text/utf8.h"
#include "tools/chat/actions.h"
#include "tools/chat/chat_options.h"
#include "tools/chat/chat_terminal.h"
#include "tools/chat/entry.h"
#include "tools/chat/setup.h"
#include "tools/options/checkpoint_choice.h"
#include "tools/options/command_line.h"
#include "tools/options/lines.h"
#include "tools/options/options.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

int status_after(const ChatActions& actions) {
  return actions.last_finish() == FinishReason::interrupted ? interrupted_status() : 0;
}

int end_interrupted() {
  note("{}", translated("interrupted before the end"));
  return interrupted_status();
}

// Sends the whole text, without its last newline, as one message.
int chat_once(std::string text, const ChatOptions& options, ChatActions& actions) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty() && !options.text.has_prompt) {
    throw Error("the text is empty, expected a message; --prompt '' sends an empty one");
  }
  options.tool_result ? actions.give_result(text) : actions.ask(text);
  return status_after(actions);
}

// Reads one message or command per line and answers each before reading the next line.
int chat_in_turns(std::istream& input, ChatActions& actions, const std::atomic<bool>& interrupted) {
  ChatEntryLines lines;
  std::string line;
  for (std::size_t number = 1; read_line(input, line, "the text"); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (!is_utf8(line)) throw Error(fmt::format("line {} of the text is not UTF-8", number));
    const auto entry = lines.push(line);
    if (!entry || entry->empty()) continue;
    try {
      if (actions.perform(parse_chat_entry(*entry)) == ChatActions::Next::exit) return 0;
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("line {} of the text: {}", number, error.what()), error.setting());
    } catch (const Error& error) {
      throw Error(fmt::format("line {} of the text: {}", number, error.what()), error.setting());
    }
    if (interrupted) return interrupted_status();
  }
  if (interrupted) return end_interrupted();
  check_standard_input();
  if (lines.open()) throw Error("the text ends inside a message, expected a \"\"\" or a line after a backslash");
  return 0;
}

// Returns the whole text; std::nullopt if standard input is read line by line, while answers are given. Called before
// interrupts are watched: one ends the program at once, however long the text takes.
std::optional<std::string> whole_text(const ChatOptions& options) {
  if (options.turns && !options.text.given()) return std::nullopt;
  return options.text.read();
}

int chat_with_script(std::optional<std::string> text, const ChatOptions& options, ChatActions& actions,
                     const std::atomic<bool>& interrupted) {
  if (!text) return chat_in_turns(std::cin, actions, interrupted);
  if (!options.turns) return chat_once(std::move(*text), options, actions);
  std::istringstream lines(std::move(*text));
  return chat_in_turns(lines, actions, interrupted);
}

std::unique_ptr<AnswerOutput> output_of(const ChatOptions& options, const ChatNotices& notices) {
  if (options.json) return std::make_unique<JsonOutput>();
  return std::make_unique<TextOutput>(notices, options.show_thinking);
}

// Returns the status of chat(); if nothing can be printed any more, keeps what was said so far.
template <class Chat>
int kept_if_output_fails(ChatSetup& setup, Chat chat) {
  try {
    return chat();
  } catch (const OutputFailure&) {
    setup.keep();
    throw;
  }
}

int run_chat(ChatOptions options) {
  const bool interactive = options.interactive();
  if (interactive) {
    if (const auto status = choose_checkpoint(options.checkpoint.model, chat_screen())) return *status;
  }
  ChatSetup setup(options);
  const ChatNotices notices =
      interactive ? ChatNotices::on_screen(chat_screen()) : ChatNotices::for_scripts(options.run.quiet);
  const std::unique_ptr<AnswerOutput> output = output_of(options, notices);
  int status = 0;
  if (interactive) {
    TerminalSignals& signals = watch_terminal_signals();
    ChatActions actions(
        setup.conversation(), *output, notices, signals.interrupted, [&] { setup.reload(notices); },
        setup.model_files());
    if (!options.run.quiet) note("/help lists the commands; Ctrl-D to exit");
    status = kept_if_output_fails(setup, [&] {
      return chat_on_terminal(actions, notices, signals, [&] {
        setup.keep_turn(notices);
        setup.look_at_file(notices);
      });
    });
  } else {
    std::optional<std::string> text = whole_text(options);
    const WatchedInterrupts interrupts;
    ChatActions actions(
        setup.conversation(), *output, notices, interrupts.flag(), [&] { setup.reload(notices); }, setup.model_files());
    status = kept_if_output_fails(
        setup, [&] { return chat_with_script(std::move(text), options, actions, interrupts.flag()); });
  }
  setup.keep();
  return status;
}

}  // namespace

Command add_chat(CommandOptions& command) {
  auto options = std::make_shared<ChatOptions>();
  options->add_to(command);
  return [options] { return run_chat(*options); };
}

}  // namespace minimind
