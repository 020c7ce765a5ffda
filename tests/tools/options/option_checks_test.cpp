#include "tools/options/option_checks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/llm/llm.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

using Counts = std::vector<std::size_t>;

std::string complaint_about(const OptionCheck& check, std::string value) {
  return check(value);
}

TEST(OptionChecks, AFolderExists) {
  EXPECT_EQ(a_folder("/"), "");
  EXPECT_EQ(a_folder("/no such folder"), "'/no such folder' is not a folder, expected one that exists");
  EXPECT_NE(a_folder(MINIMIND_SOURCE_DIR "/Makefile"), "");
}

TEST(OptionChecks, AWholeNumberIsDecimalDigits) {
  const OptionCheck check = whole_number(0, 1000);
  for (std::string value : {"0", "010", "1000"}) {
    EXPECT_EQ(check(value), "") << value;
    EXPECT_TRUE(value == "0" || value == "10" || value == "1000") << value;
  }
}

TEST(OptionChecks, ErrorsNameTheExpectedRange) {
  const OptionCheck check = whole_number(1, 2'000'000'000);
  for (const char* bad : {"1.5", "12abc", "abc", "0x10", "1,5", "+5", " 5", "5 ", "nan", "inf", "1e99", "五", "8k"}) {
    const std::string complaint = complaint_about(check, bad);
    EXPECT_NE(complaint.find("is not a whole number, expected one from 1 to 2000000000"), std::string::npos)
        << bad << ": " << complaint;
    EXPECT_NE(complaint.find(bad), std::string::npos) << complaint;
  }
  EXPECT_EQ(complaint_about(check, "1e9"),
            "'1e9' is not a whole number, expected one from 1 to 2000000000; write 1000000000");
  EXPECT_EQ(complaint_about(check, "-1"), "-1 is too small, expected a whole number from 1 to 2000000000");
  EXPECT_EQ(complaint_about(check, "0"), "0 is too small, expected a whole number from 1 to 2000000000");
  EXPECT_EQ(complaint_about(check, ""), "the value is empty, expected a whole number from 1 to 2000000000");
  EXPECT_EQ(complaint_about(check, "99999999999999999999"),
            "99999999999999999999 is too large, expected a whole number from 1 to 2000000000");
}

TEST(OptionChecks, AWholeNumberMayHave64Bits) {
  EXPECT_EQ(complaint_about(whole_number(0, UINT64_MAX), "18446744073709551615"), "");
  EXPECT_NE(complaint_about(whole_number(0, UINT64_MAX), "18446744073709551616"), "");
}

TEST(OptionChecks, ANumberIsFiniteAndDecimal) {
  for (const char* good : {"0", "0.85", "-1", "1e-3", ".5", "2E4"}) EXPECT_EQ(a_number(good), "") << good;
  for (const char* bad : {"abc", "nan", "inf", "-inf", "0x10", "1,5", "1.5x", "", "1e999", "0.8 "}) {
    EXPECT_NE(a_number(bad).find("expected"), std::string::npos) << bad;
  }
  EXPECT_EQ(not_negative("0"), "");
  EXPECT_EQ(not_negative("-0.5"), "-0.5 is negative, expected 0 or more");
}

TEST(OptionChecks, TypesHaveAliases) {
  const auto parsed = [](const char* given) { return parse_type_name("--type", given, weight_type_names()); };
  for (const char* name : {"f16", "F16", "fp16", "FP16", "float16", "half", "torch.float16"}) {
    EXPECT_EQ(parsed(name), "f16") << name;
  }
  for (const char* name : {"f32", "fp32", "float32", "float", "F32"}) EXPECT_EQ(parsed(name), "f32") << name;
  for (const char* name : {"bf16", "BF16", "bfloat16", "BFloat16"}) EXPECT_EQ(parsed(name), "bf16") << name;
  EXPECT_EQ(parsed("Q8_0"), "q8_0");
  EXPECT_EQ(parsed("Q4_0"), "q4_0");
  EXPECT_EQ(parsed("IQ4_NL"), "iq4_nl");
  EXPECT_EQ(parsed("q8-0"), "q8_0");
}

TEST(OptionChecks, AnUnknownTypeListsTheTypes) {
  for (const char* bad : {"q4", "int8", "", "f64"}) {
    EXPECT_THROW(parse_type_name("--type", bad, weight_type_names()), UsageError) << bad;
  }
  try {
    parse_type_name("--kv-type", "bf16", kv_type_names());
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--kv-type: 'bf16' is unknown, expected f32, f16 or q8_0; did you mean f16?");
  }
  EXPECT_EQ(error_of([] {
              parse_type_name("--type", "Q8_R", {"f16", "q8_0"});
            }),
            "--type: q8_r is for weights in memory only, expected f16 or q8_0");
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
