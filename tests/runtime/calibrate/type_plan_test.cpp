#include "runtime/calibrate/type_plan.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

std::vector<PlannedTensor> two_tensors() {
  const std::vector<TypeChoice> choices{{DType::q8_0, 340, 0.001}, {DType::iq4_nl, 180, 0.1}, {DType::q5_0, 220, 0.02}};
  std::vector<TypeChoice> sensitive = choices;
  for (TypeChoice& choice : sensitive) choice.loss *= 10;
  return {{"a", 320, choices, 0}, {"b", 320, sensitive, 0}};
}

TEST(TypePlan, GivesBytesWhereTheySaveMost) {
  auto tensors = two_tensors();
  ASSERT_TRUE(choose_types(tensors, 180 + 340));
  EXPECT_EQ(tensors[0].choice().type, DType::iq4_nl);
  EXPECT_EQ(tensors[1].choice().type, DType::q8_0);
}

TEST(TypePlan, KeepsTheBudgetToTheByte) {
  for (std::size_t budget = 360; budget < 700; ++budget) {
    auto tensors = two_tensors();
    ASSERT_TRUE(choose_types(tensors, budget));
    EXPECT_LE(tensors[0].choice().bytes + tensors[1].choice().bytes, budget);
  }
  auto tensors = two_tensors();
  EXPECT_FALSE(choose_types(tensors, 359));
}

TEST(TypePlan, NeverTakesATypeThatASmallerOneBeats) {
  std::vector<PlannedTensor> tensors{{"a", 320, {{DType::q4_1, 200, 0.3}, {DType::iq4_nl, 180, 0.1}}, 0}};
  ASSERT_TRUE(choose_types(tensors, 1000));
  EXPECT_EQ(tensors[0].choice().type, DType::iq4_nl);
}

TEST(TypePlan, TakesTheBetterOfTwoTypesOfOneSize) {
  std::vector<PlannedTensor> tensors{{"a", 320, {{DType::q4_1, 200, 0.3}, {DType::iq4_nl, 200, 0.1}}, 0}};
  ASSERT_TRUE(choose_types(tensors, 1000));
  EXPECT_EQ(tensors[0].choice().type, DType::iq4_nl);
}

TEST(TypePlan, DoesNotDependOnTheOrderOfTensors) {
  for (std::size_t budget = 360; budget < 700; budget += 20) {
    auto tensors = two_tensors(), reversed = two_tensors();
    std::swap(reversed[0], reversed[1]);
    ASSERT_TRUE(choose_types(tensors, budget) && choose_types(reversed, budget));
    EXPECT_EQ(tensors[0].choice().type, reversed[1].choice().type) << budget;
    EXPECT_EQ(tensors[1].choice().type, reversed[0].choice().type) << budget;
  }
}

// Bytes are planned in units that are larger than one if there are many.
TEST(TypePlan, LeavesNoBytesInWhichALargerTypeFits) {
  for (std::size_t budget = 360'000; budget < 700'000; budget += 10'000) {
    auto tensors = two_tensors();
    for (PlannedTensor& tensor : tensors) {
      for (TypeChoice& choice : tensor.choices) choice.bytes *= 1000;
    }
    ASSERT_TRUE(choose_types(tensors, budget));
    const std::size_t bytes = tensors[0].choice().bytes + tensors[1].choice().bytes;
    EXPECT_LE(bytes, budget);
    for (const PlannedTensor& tensor : tensors) {
      if (tensor.chosen + 1 == tensor.choices.size()) continue;
      EXPECT_GT(bytes - tensor.choice().bytes + tensor.choices[tensor.chosen + 1].bytes, budget) << budget;
    }
  }
}

TEST(TypePlan, ReadsWhatItPrints) {
  auto tensors = two_tensors();
  ASSERT_TRUE(choose_types(tensors, 560));
  const auto plan = parse_type_plan(type_plan_text(tensors), "plan.txt");
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan.at("a"), tensors[0].choice().type);
  EXPECT_EQ(plan.at("b"), tensors[1].choice().type);
}

TEST(TypePlan, NamesTheLineOfAnError) {
  const auto error = [](const char* text) { return error_of([&] { parse_type_plan(text, "plan.txt"); }); };
  EXPECT_NE(error("a q8_0\nb\n").find("plan.txt: line 2 is 'b', expected a tensor and its type"), std::string::npos)
      << error("a q8_0\nb\n");
  EXPECT_NE(error("a q9\n").find("line 1: the type of a is 'q9'"), std::string::npos) << error("a q9\n");
  EXPECT_NE(error("a q8_0\na q4_0").find("line 2: a is repeated"), std::string::npos);
  EXPECT_NE(error("# nothing\n\n").find("plan.txt: has no tensors"), std::string::npos);
}

}  // namespace
}  // namespace minimind
