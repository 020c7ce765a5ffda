#include "tools/chat/entry.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "weights/base/error.h"

namespace minimind {
namespace {

// Returns the entries of the lines, then "open" if the last is incomplete.
std::vector<std::string> entries_of(const std::vector<std::string>& lines) {
  ChatEntryLines entry_lines;
  std::vector<std::string> entries;
  for (const std::string& line : lines) {
    if (const auto entry = entry_lines.push(line)) entries.push_back(*entry);
  }
  if (entry_lines.open()) entries.push_back("open");
  return entries;
}

using Entries = std::vector<std::string>;

TEST(ChatEntry, EachLineIsAnEntry) {
  EXPECT_EQ(entries_of({"你好", "", "/help"}), (Entries{"你好", "", "/help"}));
}

TEST(ChatEntry, ALineThatEndsInABackslashContinues) {
  EXPECT_EQ(entries_of({"a\\", "b\\", "c", "d"}), (Entries{"a\nb\nc", "d"}));
  EXPECT_EQ(entries_of({"a\\", ""}), (Entries{"a\n"}));
  EXPECT_EQ(entries_of({"a\\"}), Entries{"open"});
}

TEST(ChatEntry, ABlockBetweenThreeQuotesIsVerbatim) {
  EXPECT_EQ(entries_of({"\"\"\"", "a\\", "", "/b", "\"\"\"", "c"}), (Entries{"a\\\n\n/b", "c"}));
  EXPECT_EQ(entries_of({"\"\"\"", "\"\"\""}), Entries{""});
  EXPECT_EQ(entries_of({"\"\"\"", " \"\"\" ", "\"\"\"\"", "\"\"\""}), Entries{" \"\"\" \n\"\"\"\""});
  EXPECT_EQ(entries_of({"\"\"\"", "a"}), Entries{"open"});
  EXPECT_EQ(entries_of({"\"\"\"", "/help", "\"\"\""}), Entries{"//help"});
}

TEST(ChatEntry, ThreeQuotesElsewhereAreText) {
  EXPECT_EQ(entries_of({"\"\"\"a", "b \"\"\"", "//x \"\"\""}), (Entries{"\"\"\"a", "b \"\"\"", "//x \"\"\""}));
}

TEST(ChatEntry, ACommandMayTakeABlock) {
  EXPECT_EQ(entries_of({"/tool \"\"\"", "{", "}", "\"\"\""}), Entries{"/tool {\n}"});
}

TEST(ChatEntry, PastedLinesAreOneEntryAndMayBeABlock) {
  EXPECT_EQ(entries_of({"a\nb"}), Entries{"a\nb"});
  EXPECT_EQ(entries_of({"\"\"\"\na\n\"\"\""}), Entries{"a"});
  EXPECT_EQ(entries_of({"\"\"\"\na", "b", "\"\"\""}), Entries{"a\nb"});
}

TEST(ChatEntry, ClearDiscardsAnIncompleteEntry) {
  ChatEntryLines lines;
  lines.push("\"\"\"");
  EXPECT_TRUE(lines.open());
  lines.clear();
  EXPECT_FALSE(lines.open());
  EXPECT_EQ(lines.push("a"), "a");
}

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
