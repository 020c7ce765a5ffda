#include "tools/options/profiling.h"

#include <gtest/gtest.h>

#include <string>

namespace minimind {
namespace {

TEST(ProfileTable, HasARowPerOperationUsed) {
  Profile profile(2);
  EXPECT_EQ(to_table(profile), "");
  {
    const ProfiledPass pass(&profile, 1);
    for (ThreadProfile& thread : pass.threads()) {
      thread.start();
      thread.enter(Operation::gate_up);
      thread.enter(Operation::down);
    }
  }
  const std::string table = to_table(profile);
  EXPECT_EQ(table.find("prompt"), std::string::npos) << table;
  EXPECT_EQ(table.substr(0, table.find('\n')), "decode: 1 token in 1 pass");
  for (const char* part : {"us/token", "share", "thread 1", "thread 2", "gate, up", "start and end", "100.0%"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
  EXPECT_EQ(table.find("attention"), std::string::npos) << table;
}

}  // namespace
}  // namespace minimind
