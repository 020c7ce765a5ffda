#include "tools/bench/statistics.h"

#include <gtest/gtest.h>

#include "weights/base/error.h"

namespace minimind {
namespace {

using Counts = std::vector<std::size_t>;

TEST(SpreadOf, GivesTheMedian) {
  const Spread odd = spread_of({5, 1, 100});
  EXPECT_EQ(odd.median, 5);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 100);
  EXPECT_EQ(spread_of({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(spread_of({7}).median, 7);
}

TEST(ParseList, SplitsAtCommas) {
  EXPECT_EQ(parse_list("f16,q8_0", "--type"), (std::vector<std::string>{"f16", "q8_0"}));
  EXPECT_EQ(parse_list("f16", "--type"), std::vector<std::string>{"f16"});
}

TEST(ParseList, RejectsEmptyPartsAndRepetitions) {
  for (const char* text : {"", ",", "f16,", ",f16", "f16,,q8_0", "f16,q8_0,f16"}) {
    EXPECT_THROW(parse_list(text, "--type"), UsageError) << text;
  }
}

TEST(ParseCounts, ReadsNumbersInTheirRange) {
  EXPECT_EQ(parse_counts("1,2,16", "--threads", 1, 16), (Counts{1, 2, 16}));
  EXPECT_EQ(parse_counts("0", "--depth", 0, 9), Counts{0});
}

TEST(ParseCounts, RejectsAndNamesAnythingElse) {
  for (const char* text : {"", "0", "17", "-1", "+1", "1.5", "1e1", "x", " 1", "1,", "1,01", "99999999999999999999"}) {
    EXPECT_THROW(parse_counts(text, "--threads", 1, 16), UsageError) << text;
  }
  const auto complaint_about = [](const char* text) -> std::string {
    try {
      parse_counts(text, "--threads", 1, 16);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint_about("2,two"), "--threads: 'two' is not a whole number, expected one from 1 to 16");
  EXPECT_EQ(complaint_about("0"), "--threads: 0 is too small, expected a whole number from 1 to 16");
  EXPECT_EQ(complaint_about("-1"), "--threads: -1 is too small, expected a whole number from 1 to 16");
  EXPECT_EQ(complaint_about("99999999999999999999"),
            "--threads: 99999999999999999999 is too large, expected a whole number from 1 to 16");
  EXPECT_EQ(complaint_about("1e1"), "--threads: '1e1' is not a whole number, expected one from 1 to 16; write 10");
  EXPECT_EQ(complaint_about(""), "--threads: the value is empty");
}

}  // namespace
}  // namespace minimind
