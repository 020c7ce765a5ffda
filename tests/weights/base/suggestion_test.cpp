#include "weights/base/suggestion.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace minimind {
namespace {

const std::vector<std::string> names{"generate", "chat", "compare", "convert", "q8_0", "iq4_nl", "--max-tokens"};

TEST(Suggestion, FindsTheNearestChoice) {
  const auto expect = [](const char* given, const char* meant) {
    EXPECT_EQ(nearest(given, names), std::optional<std::string>(meant)) << given;
  };
  expect("generate", "generate");
  expect("GENERATE", "generate");
  expect("gen", "generate");
  expect("genrate", "generate");
  expect("gneerate", "generate");
  expect("chatter", "chat");
  expect("caht", "chat");
  expect("conv", "convert");
  expect("q8", "q8_0");
  expect("Q8-0", "q8_0");
  expect("--max_tokens", "--max-tokens");
  expect("--max-token", "--max-tokens");
}

TEST(Suggestion, IsNulloptIfNoChoiceIsNear) {
  for (const char* given : {"", "x", "sing", "out/x.pth", "一", "--temperature"}) {
    EXPECT_EQ(nearest(given, names), std::nullopt) << given;
  }
  EXPECT_EQ(nearest(std::string(100'000, 'g'), names), std::nullopt);
}

TEST(Suggestion, AnUnknownChoiceListsWhatExists) {
  const std::vector<std::string> types{"f32", "f16", "q8_0"};
  EXPECT_EQ(unknown_choice("q9", types), "'q9' is unknown, expected f32, f16 or q8_0");
  EXPECT_EQ(unknown_choice("q8", types), "'q8' is unknown, expected f32, f16 or q8_0; did you mean q8_0?");
}

}  // namespace
}  // namespace minimind
