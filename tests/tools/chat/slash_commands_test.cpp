#include "tools/chat/slash_commands.h"

#include <gtest/gtest.h>

#include <sstream>

#include "weights/base/error.h"

namespace minimind {
namespace {

std::string message_of(const std::string& text) {
  const ChatEntry entry = parse_chat_entry(text);
  const auto* message = std::get_if<ChatMessage>(&entry);
  return message ? message->text : "a command";
}

ChatCommand command_of(const std::string& text) {
  return std::get<ChatCommand>(parse_chat_entry(text));
}

std::string complaint_about(const std::string& text) {
  try {
    parse_chat_entry(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ChatCommands, TextWithoutASlashIsAMessage) {
  for (const char* text : {"你好", " /help", "a /reset", "two\nlines\n", ""}) EXPECT_EQ(message_of(text), text);
}

TEST(ChatCommands, TwoSlashesStartAMessageWithOne) {
  EXPECT_EQ(message_of("//help"), "/help");
  EXPECT_EQ(message_of("///"), "//");
}

TEST(ChatCommands, ArgumentsHaveNoSurroundingWhitespace) {
  EXPECT_EQ(command_of("/reset").action, ChatAction::reset);
  EXPECT_EQ(command_of("/clear").action, ChatAction::reset);
  EXPECT_EQ(command_of("/quit").action, ChatAction::exit);
  EXPECT_EQ(command_of("/exit ").action, ChatAction::exit);
  EXPECT_EQ(command_of("/load  my file.json ").argument, "my file.json");
  EXPECT_EQ(command_of("/tool\n{\"a\":\n1}").argument, "{\"a\":\n1}");
  EXPECT_EQ(command_of("/system").argument, "");
}

TEST(ChatCommands, AnUnknownCommandIsAnError) {
  EXPECT_NE(complaint_about("/hepl").find("unknown command '/hepl'; did you mean /help?"), std::string::npos);
  EXPECT_NE(complaint_about("/home/me is a folder").find("'/home/me'"), std::string::npos);
  EXPECT_NE(complaint_about("/").find("'/'"), std::string::npos);
  EXPECT_NE(complaint_about("/HELP").find("'/HELP'"), std::string::npos);
}

TEST(ChatCommands, MissingAndExtraArgumentsAreErrors) {
  EXPECT_EQ(complaint_about("/save"), "/save requires FILE");
  EXPECT_EQ(complaint_about("/undo 2"), "/undo takes no argument");
}

TEST(ChatCommands, HelpNamesEveryCommand) {
  for (const ChatCommandInfo& command : chat_commands()) {
    EXPECT_NE(chat_help().find(command.name), std::string::npos) << command.name;
  }
}

TEST(ChatCommands, HelpFitsAScreenOf80Columns) {
  std::istringstream lines(chat_help());
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 80u) << line;
}

}  // namespace
}  // namespace minimind
