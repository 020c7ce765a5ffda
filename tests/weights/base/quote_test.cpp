#include "weights/base/quote.h"

#include <gtest/gtest.h>

#include <string>

namespace minimind {
namespace {

using namespace std::string_literals;

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
