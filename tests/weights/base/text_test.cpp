#include "weights/base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace minimind {
namespace {

using namespace std::string_literals;

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

TEST(Quoted, KeepsPlainNames) {
  EXPECT_EQ(quote("model.norm.weight"s.c_str()), "'model.norm.weight'");
  EXPECT_EQ(quote("注意力 é"), "'注意力 é'");
  EXPECT_EQ(quote(""), "''");
}

TEST(Quoted, EscapesWhatATerminalWouldObeyOrHide) {
  EXPECT_EQ(quote("a\nb\x1b[2J\x7f\0"s), "'a\\x0ab\\x1b[2J\\x7f\\x00'");
  EXPECT_EQ(quote("\xE2\x80\xAE"), "'\\xe2\\x80\\xae'");  // right-to-left override
  EXPECT_EQ(quote("\xC2\x9B"), "'\\xc2\\x9b'");           // the one-byte form of ESC [
}

TEST(Quoted, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(quote("a\xff\xe4\xb8"), "'a\\xff\\xe4\\xb8'");
}

TEST(Quoted, CutsLongNames) {
  EXPECT_EQ(quote(std::string(1'000'000, 'n')), "'" + std::string(200, 'n') + "...'");
  EXPECT_EQ(quote(std::string(200, 'n')), "'" + std::string(200, 'n') + "'");
}

TEST(IsTensorName, TakesVisibleUtf8OfAReasonableLength) {
  EXPECT_TRUE(is_tensor_name("layers.0.attention.wq.weight"));
  EXPECT_TRUE(is_tensor_name("注意力"));
  EXPECT_TRUE(is_tensor_name(std::string(1000, 'n')));
  for (const std::string& name : {""s, std::string(1001, 'n'), "a\tb"s, "a\0"s, "\xff"s, "\xE2\x80\xAE"s}) {
    EXPECT_FALSE(is_tensor_name(name));
  }
}

}  // namespace
}  // namespace minimind
