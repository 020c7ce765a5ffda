#include "tools/chat/entry.h"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace minimind
