#include "tools/chat/chat_terminal.h"

#include <unistd.h>

#include <csignal>

#include "tools/chat/entry.h"
#include "tools/chat/input_history.h"
#include "tools/options/command_line.h"
#include "tools/terminal/line_editor.h"
#include "tools/terminal/terminal.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const ChatCommandInfo& command : chat_commands()) names.emplace_back(command.name);
  return names;
}

// Reads entries line by line.
class EntryReader {
 public:
  EntryReader(std::FILE* screen, TerminalSignals& signals)
      : editor_(screen, command_names(), signals), history_(history_path()), styles_(takes_styles(screen)) {
    for (const std::string& entry : history_.entries()) editor_.remember(entry);
  }

  // Returns an entry that is not empty; or, if reading ended, how it ended and what had been typed.
  EditedLine read() {
    while (true) {
      EditedLine line = editor_.read(lines_.open() ? "…" : ">", styles_);
      if (line.end != LineEnd::entered) {
        lines_.clear();
        return line;
      }
      const auto entry = lines_.push(line.text);
      if (!entry || trimmed(*entry).empty()) continue;
      editor_.remember(*entry);
      history_.add(*entry);
      return {LineEnd::entered, *entry};
    }
  }

 private:
  LineEditor editor_;
  InputHistory history_;
  ChatEntryLines lines_;
  bool styles_;
};

// Whether this is a word that exits many other prompts, in any case. Scripts send such words as messages.
bool says_exit(const std::string& text) {
  const std::string word = normalized(text.substr(0, text.find_last_not_of(" \t") + 1));
  return word == "exit" || word == "quit";
}

ChatActions::Next perform(ChatActions& actions, const std::string& text, const ChatNotices& notices,
                          TerminalSignals& signals) {
  if (says_exit(text)) {
    notices.say("exited, as with /exit; to send this word as a message, start it with a space");
    return ChatActions::Next::exit;
  }
  const NoEcho no_echo;
  ChatActions::Next next = ChatActions::Next::proceed;
  try {
    next = actions.perform(parse_chat_entry(text));
  } catch (const Error& error) {
    notices.complain(message_of(error));
  }
  if (actions.last_finish() == FinishReason::interrupted) signals.interrupted = false;
  return next;
}

}  // namespace

std::FILE* chat_screen() {
  return isatty(STDERR_FILENO) || !isatty(STDOUT_FILENO) ? stderr : stdout;
}

int chat_on_terminal(ChatActions& actions, const ChatNotices& notices, TerminalSignals& signals,
                     const std::function<void()>& keep) {
  std::FILE* const screen = chat_screen();
  EntryReader reader(screen, signals);
  bool cancelled = false;
  while (true) {
    const EditedLine entry = reader.read();
    if (signals.ended) return status_after_signal(signals.ended);
    if (entry.end == LineEnd::end_of_input) return 0;
    if (entry.end == LineEnd::cancelled) {
      if (cancelled && entry.text.empty()) return status_after_signal(SIGINT);
      if (!cancelled) notices.say("Ctrl-C again or Ctrl-D to exit");
      cancelled = true;
      continue;
    }
    cancelled = false;
    if (perform(actions, entry.text, notices, signals) == ChatActions::Next::exit) return 0;
    if (signals.ended) return status_after_signal(signals.ended);
    keep();
    std::fputs("\n", screen);
  }
}

}  // namespace minimind
