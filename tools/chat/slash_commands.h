#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace minimind {

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
