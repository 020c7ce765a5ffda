#include "weights/base/text.h"

#include <gtest/gtest.h>

namespace minimind {
namespace {

TEST(Text, LowerCaseChangesAsciiLettersAlone) {
  EXPECT_EQ(lower_case("GGUF Q8_0 \xC3\x84 北京"), "gguf q8_0 \xC3\x84 北京");
}

TEST(Text, TrimmedHasNoSpacesAtItsEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  for (const char* blank : {"", " ", " \r\n\t"}) EXPECT_EQ(trimmed(blank), "");
}

TEST(Text, DigitsAreDecimalAndAtLeastOne) {
  EXPECT_TRUE(is_digits("0123456789"));
  for (const char* other : {"", "-1", "1.0", " 1", "1a", "\xD9\xA1"}) EXPECT_FALSE(is_digits(other)) << other;
}

}  // namespace
}  // namespace minimind
