#include "runtime/generate/speculate.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/engine/load_model.h"
#include "tests/support/golden.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

using Tokens = std::vector<std::int32_t>;

class DraftModelTest : public testing::Test {
 protected:
  DraftModelTest()
      : golden_(load_golden("v3-dense")),
        prompt_(golden_.tokens.begin(), golden_.tokens.begin() + static_cast<std::ptrdiff_t>(golden_.prompt_len)),
        model_(load_model(open_checkpoint(golden_.model_path, {}), std::nullopt, 1)) {}

  DraftModel drafter(std::size_t capacity) const {
    return DraftModel(
        Forward(model_, kernels::choose(), 1, /*max_tokens=*/std::min<std::size_t>(5, capacity), capacity),
        Context(model_.config, capacity));
  }

  Tokens draft(DraftModel& drafter, const Tokens& text, std::size_t most, bool interrupted = false) const {
    const std::atomic<bool> flag = interrupted;
    const auto drafts = drafter.draft(text, most, flag);
    return {drafts.begin(), drafts.end()};
  }

  Tokens greedy(std::size_t first, std::size_t last) const {
    return {golden_.greedy.begin() + static_cast<std::ptrdiff_t>(first),
            golden_.greedy.begin() + static_cast<std::ptrdiff_t>(last)};
  }

  GoldenCase golden_;
  Tokens prompt_;
  Model model_;
};

TEST_F(DraftModelTest, DraftsTop1Tokens) {
  DraftModel model = drafter(64);
  EXPECT_EQ(draft(model, prompt_, 4), greedy(0, 4));
  EXPECT_EQ(draft(model, prompt_, 1), greedy(0, 1));
  EXPECT_EQ(draft(model, prompt_, 0), Tokens());
}

TEST_F(DraftModelTest, AnyTextMayComeAfterAnyOther) {
  DraftModel model = drafter(64);
  draft(model, prompt_, 4);
  Tokens other = prompt_;
  other.back() = (other.back() + 1) % static_cast<std::int32_t>(golden_.vocab);
  DraftModel fresh = drafter(64);
  EXPECT_EQ(draft(model, other, 4), draft(fresh, other, 4));
  Tokens longer = prompt_;
  longer.insert(longer.end(), golden_.greedy.begin(), golden_.greedy.begin() + 3);
  EXPECT_EQ(draft(model, longer, 4), greedy(3, 7));
  EXPECT_EQ(draft(model, prompt_, 4), greedy(0, 4));
}

TEST_F(DraftModelTest, DraftsAsFarAsItsContextReaches) {
  DraftModel model = drafter(prompt_.size() + 1);
  EXPECT_EQ(draft(model, prompt_, 8), greedy(0, 2)) << "the last draft takes no place";
  Tokens longer = prompt_;
  longer.insert(longer.end(), {1, 2});
  EXPECT_EQ(draft(model, longer, 8), Tokens());
}

TEST_F(DraftModelTest, AnInterruptionEndsItsWork) {
  DraftModel model = drafter(64);
  EXPECT_EQ(draft(model, prompt_, 4, true), Tokens());
  EXPECT_EQ(draft(model, prompt_, 4), greedy(0, 4));
}

}  // namespace
}  // namespace minimind
