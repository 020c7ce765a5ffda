#include "weights/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace minimind {
namespace {

TEST(Error, KeepsWhatFollowsAZeroByteOfAName) {
  const std::string name("a\0b", 3);
  EXPECT_STREQ(Error("f: " + name + " is repeated").what(), "f: a?b is repeated");
  EXPECT_STREQ(UsageError(name + ": unknown").what(), "a?b: unknown");
}

}  // namespace
}  // namespace minimind
