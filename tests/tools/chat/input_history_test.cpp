#include "tools/chat/input_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

using Entries = std::vector<std::string>;

TEST(InputHistory, RemembersEntriesOfAnyTextInOrder) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/state/minimind/history";
  InputHistory history(path);
  const Entries entries = {"你好", "two\nlines", "back\\slash\\n", "/stats"};
  for (const std::string& entry : entries) history.add(entry);
  EXPECT_EQ(history.entries(), entries);
  EXPECT_EQ(InputHistory(path).entries(), entries);
}

TEST(InputHistory, OnlyItsOwnerCanReadTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/history";
  InputHistory(path).add("a");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(InputHistory, DropsRepeatedEmptyAndHugeEntries) {
  const TemporaryFolder folder;
  InputHistory history(folder.path() + "/history");
  for (const std::string& entry : {std::string("a"), std::string("a"), std::string(), std::string("b"),
                                   std::string(InputHistory::longest_entry + 1, 'x'), std::string("a")}) {
    history.add(entry);
  }
  EXPECT_EQ(history.entries(), (Entries{"a", "b", "a"}));
}

TEST(InputHistory, KeepsTheLastThousandAndShortensTheFile) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 2500; ++i) lines += std::to_string(i) + "\n";
  const std::string path = folder.write("history", lines);
  const InputHistory history(path);
  ASSERT_EQ(history.entries().size(), InputHistory::most_entries);
  EXPECT_EQ(history.entries().front(), "1500");
  EXPECT_LT(read_whole_file(path).size(), lines.size() / 2);
  EXPECT_EQ(InputHistory(path).entries(), history.entries());
}

TEST(InputHistory, AMalformedFileIsNotAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(InputHistory(folder.write("history", "\xff\xfe\ngood\n\\")).entries(), (Entries{"good", "\\"}));
  const std::string huge(InputHistory::longest_entry + 1, 'x');
  EXPECT_EQ(InputHistory(folder.write("history", huge + "\ngood\n")).entries(), Entries{"good"});
}

TEST(InputHistory, AnUnwritablePathIsNotAnError) {
  const TemporaryFolder folder;
  for (const std::string& path : {std::string(), folder.write("file", "") + "/history", folder.path()}) {
    InputHistory history(path);
    history.add("a");
    EXPECT_EQ(history.entries(), Entries{"a"});
    EXPECT_EQ(InputHistory(path).entries(), Entries{});
  }
}

TEST(InputHistory, IsInTheXdgStateFolder) {
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(history_path(), "/state/minimind/history");
  setenv("XDG_STATE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(history_path(), "/home/me/.local/state/minimind/history");
  unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(history_path(), "/home/me/.local/state/minimind/history");
  unsetenv("HOME");
  EXPECT_EQ(history_path(), "");
}

}  // namespace
}  // namespace minimind
