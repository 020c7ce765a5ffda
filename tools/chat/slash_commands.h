#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace minimind {

enum class ChatAction { help, reset, undo, regenerate, system, think, save, load, stats, tool, exit };

// What the help says about a command.
struct ChatCommandInfo {
  std::string_view name;      // with its slash
  std::string_view argument;  // such as "FILE"; empty where it takes none
  std::string_view does;
  ChatAction action;
};

std::span<const ChatCommandInfo> chat_commands();

struct ChatCommand {
  ChatAction action;
  std::string argument;  // without blanks at its ends; empty where none was given
};

struct ChatMessage {
  std::string text;
};

using ChatEntry = std::variant<ChatMessage, ChatCommand>;

// What somebody entered: a command when it begins with a slash, a message otherwise; two slashes begin a message that
// begins with one. Throws UsageError for a command that is unknown, lacks its argument or takes none.
ChatEntry parse_chat_entry(std::string_view text);

// The lines of /help.
std::string chat_help();

}  // namespace minimind
