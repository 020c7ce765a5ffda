#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace minimind {

// Joins lines to a message. A line that ends in a backslash continues in the next line. A block is all lines between a
// line of """, or a command that ends in """, and the next line of """. A block without a command is always a message:
// if it starts with a slash, that slash is doubled.
class ChatEntryLines {
 public:
  // Returns the message that the line completes, without a newline at its end; std::nullopt if it continues. The line
  // may contain newlines, as pasted text does.
  std::optional<std::string> push(std::string_view line);

  // Whether a message has started and is not complete.
  bool open() const { return open_; }

  // Discards an incomplete message.
  void clear();

 private:
  bool open_ = false;
  bool block_ = false;
  std::string text_;  // what was entered, with the marks
};

enum class ChatAction { help, reset, undo, regenerate, system, think, save, load, stats, tool, reload, exit };

// A command in /help.
struct ChatCommandInfo {
  std::string_view name;      // with its slash
  std::string_view argument;  // such as "FILE"; empty if it takes none
  std::string_view does;
  ChatAction action;
};

std::span<const ChatCommandInfo> chat_commands();

struct ChatCommand {
  ChatAction action;
  std::string argument;  // without whitespace at its ends; empty if none was given
};

struct ChatMessage {
  std::string text;
};

using ChatEntry = std::variant<ChatMessage, ChatCommand>;

// Parses an entry: a command if it starts with a slash, otherwise a message. Two slashes start a message that starts
// with one. Throws UsageError for a command that is unknown, lacks its argument or takes none.
ChatEntry parse_chat_entry(std::string_view text);

// Returns the lines of /help.
std::string chat_help();

}  // namespace minimind
