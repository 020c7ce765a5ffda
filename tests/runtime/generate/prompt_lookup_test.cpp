#include "runtime/generate/speculate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace minimind {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens draft(PromptLookup& lookup, const Tokens& text, std::size_t most = 8) {
  const std::atomic<bool> interrupted = false;
  const auto drafts = lookup.draft(text, most, interrupted);
  return {drafts.begin(), drafts.end()};
}

Tokens draft(const Tokens& text, std::size_t most = 8) {
  PromptLookup lookup;
  return draft(lookup, text, most);
}

TEST(PromptLookup, FollowsWhatWasSaidBefore) {
  EXPECT_EQ(draft({1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4}), (Tokens{5, 6, 7, 1}));
}

TEST(PromptLookup, DraftsNothingWithoutRepetition) {
  EXPECT_EQ(draft({1}), Tokens());
  EXPECT_EQ(draft({1, 2, 3}), Tokens());
  EXPECT_EQ(draft({1, 2, 3, 4, 5, 6, 7, 8}), Tokens());
  EXPECT_EQ(draft({1, 2, 3, 4, 5, 1, 2}), Tokens()) << "two tokens may be chance";
}

TEST(PromptLookup, DraftsAtMostTheRequestedAndMatchingTokens) {
  const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4};
  EXPECT_EQ(draft(text, 0), Tokens());
  EXPECT_EQ(draft(text, 2), (Tokens{5, 6}));
  EXPECT_EQ(draft(text, 64), (Tokens{5, 6, 7, 8}));
}

TEST(PromptLookup, TheLongestAgreementIsFollowedThenTheLatest) {
  EXPECT_EQ(draft({1, 2, 3, 50, 1, 2, 3, 60, 1, 2, 3}, 1), (Tokens{60}));
  EXPECT_EQ(draft({9, 1, 2, 3, 50, 1, 2, 3, 60, 9, 1, 2, 3}, 1), (Tokens{50}));
}

TEST(PromptLookup, ALoopContinues) {
  EXPECT_EQ(draft({7, 7, 7, 7}), (Tokens{7, 7, 7}));
  EXPECT_EQ(draft({1, 2, 3, 1, 2, 3, 1, 2}, 5), (Tokens{3, 1, 2, 3, 1}));
}

TEST(PromptLookup, NegativeAndLargeIdsAreTokensLikeOthers) {
  EXPECT_EQ(draft({2147483647, -1, 1 << 20, 5, 6, 2147483647, -1, 1 << 20}, 2), (Tokens{5, 6}));
}

// The same by trying every place.
Tokens slow_draft(const Tokens& text, std::size_t most) {
  std::size_t best = 0, longest = 2;
  for (std::size_t end = text.size() - 1; end > 0; --end) {
    std::size_t count = 0;
    while (count < end && text[end - 1 - count] == text[text.size() - 1 - count]) ++count;
    if (count <= longest) continue;
    best = end;
    longest = count;
  }
  Tokens all = text;
  for (std::size_t i = 0; best > 0 && i < std::min(most, longest); ++i) all.push_back(all[best + i]);
  return {all.begin() + std::ssize(text), all.end()};
}

TEST(PromptLookup, DraftsDoNotDependOnEarlierTexts) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < 50; ++round) {
    const std::size_t vocab = 2 + below(5);
    PromptLookup lookup;
    Tokens text;
    for (int step = 0; step < 30; ++step) {
      if (below(4) == 0) text.resize(below(text.size() + 1));
      for (std::size_t i = 0, count = 1 + below(5); i < count; ++i) {
        text.push_back(static_cast<std::int32_t>(below(vocab)));
      }
      const std::size_t most = below(10);
      ASSERT_EQ(draft(lookup, text, most), slow_draft(text, most));
    }
  }
}

// A scan of all that came before would be two thousand million comparisons and more.
TEST(PromptLookup, ALongTextIsQuick) {
  for (const std::int32_t vocab : {1, 3, 6400}) {
    std::mt19937 random(1);
    std::uniform_int_distribution<std::int32_t> any(0, vocab - 1);
    Tokens text(1 << 18);
    std::generate(text.begin(), text.end(), [&] { return any(random); });
    PromptLookup lookup;
    const std::atomic<bool> interrupted = false;
    for (std::size_t size = text.size() - 300; size <= text.size(); ++size) {
      lookup.draft(std::span(text).first(size), 8, interrupted);
    }
  }
}

}  // namespace
}  // namespace minimind
