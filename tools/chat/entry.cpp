#include "tools/chat/entry.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tools/terminal/language.h"
#include "tools/terminal/text_columns.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::string_view mark = "\"\"\"";

// Whether a block starts after this line.
bool begins_block(std::string_view first_line) {
  if (first_line == mark) return true;
  return first_line.starts_with('/') && !first_line.starts_with("//") && first_line.ends_with(" \"\"\"");
}

constexpr std::array commands = {
    ChatCommandInfo{"/help", "", "this list", ChatAction::help},
    ChatCommandInfo{"/reset", "", "start over (also /clear); keep the system message", ChatAction::reset},
    ChatCommandInfo{"/clear", "", "", ChatAction::reset},
    ChatCommandInfo{"/undo", "", "take back your last message and its answer", ChatAction::undo},
    ChatCommandInfo{"/regenerate", "", "answer the last message again", ChatAction::regenerate},
    ChatCommandInfo{"/system", "[TEXT]", "set or show the system message; 'none' removes it", ChatAction::system},
    ChatCommandInfo{"/think", "[on|off]", "turn thinking on or off, or show the setting", ChatAction::think},
    ChatCommandInfo{"/tool", "[RESULT]", "return the result of a tool call to the model", ChatAction::tool},
    ChatCommandInfo{"/save", "FILE", "save the conversation as JSON", ChatAction::save},
    ChatCommandInfo{"/load", "FILE", "continue a saved conversation", ChatAction::load},
    ChatCommandInfo{"/reload", "", "load the model's file again, if it was written anew", ChatAction::reload},
    ChatCommandInfo{"/stats", "", "tokens, reuse and speed", ChatAction::stats},
    ChatCommandInfo{"/exit", "", "exit; also /quit and Ctrl-D", ChatAction::exit},
    ChatCommandInfo{"/quit", "", "", ChatAction::exit},
};

}  // namespace

void ChatEntryLines::clear() {
  *this = ChatEntryLines();
}

std::optional<std::string> ChatEntryLines::push(std::string_view line) {
  if (!open_) block_ = begins_block(line.substr(0, line.find('\n')));
  text_ += line;
  open_ = true;
  if (block_) {
    const std::size_t content = text_.find(mark);
    if (text_.find('\n') == std::string::npos || !text_.ends_with("\n\"\"\"")) {
      text_ += '\n';
      return std::nullopt;
    }
    const std::size_t from = content + mark.size() + 1;
    const std::size_t to = text_.size() - mark.size() - 1;
    std::string text = text_.substr(0, content) + (to > from ? text_.substr(from, to - from) : "");
    if (content == 0 && text.starts_with('/')) text.insert(0, "/");
    clear();
    return text;
  }
  if (text_.ends_with('\\')) {
    text_.back() = '\n';
    return std::nullopt;
  }
  return std::exchange(*this, ChatEntryLines()).text_;
}

std::span<const ChatCommandInfo> chat_commands() {
  return commands;
}

ChatEntry parse_chat_entry(std::string_view text) {
  if (!text.starts_with('/')) return ChatMessage{std::string(text)};
  if (text.starts_with("//")) return ChatMessage{std::string(text.substr(1))};
  const std::size_t end = std::min(text.find_first_of(ascii_spaces), text.size());
  const std::string_view name = text.substr(0, end);
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const ChatCommandInfo& command) { return command.name == name; });
  if (found == commands.end()) {
    std::vector<std::string> names;
    for (const ChatCommandInfo& command : commands) names.emplace_back(command.name);
    const auto meant = nearest(name, names);
    throw UsageError(
        fmt::format("unknown command {}{}; /help lists the commands; start a message with // to send it with a slash",
                    quote(name), meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }
  const std::string_view argument = trimmed(text.substr(end));
  if (found->argument.empty() && !argument.empty()) {
    throw UsageError(fmt::format("{} takes no argument", name));
  }
  if (!found->argument.empty() && found->argument.front() != '[' && argument.empty()) {
    throw UsageError(fmt::format("{} requires {}", name, found->argument));
  }
  return ChatCommand{found->action, std::string(argument)};
}

std::string chat_help() {
  std::string help;
  for (const ChatCommandInfo& command : commands) {
    if (command.does.empty()) continue;
    help += padded(fmt::format("  {} {}", command.name, translated(command.argument)), 22);
    help += std::string(translated(command.does)) + '\n';
  }
  return help + localized(
                    "A message of several lines: paste it, press Alt-Enter, end a line with a\n"
                    "backslash, or put the lines between two lines of \"\"\". //... sends a message\n"
                    "that starts with a slash.\n"
                    "Tab completes commands, Ctrl-R searches, Ctrl-C stops an answer, Ctrl-D exits.\n");
}

}  // namespace minimind
