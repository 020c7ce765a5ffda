#include "tools/commands/score_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <vector>

namespace minimind {

bool operator==(const Window& a, const Window& b) {
  return a.begin == b.begin && a.first_scored == b.first_scored && a.end == b.end;
}
void PrintTo(const Window& window, std::ostream* out) {
  *out << "[" << window.begin << " (" << window.first_scored << ") " << window.end << ")";
}

namespace {

using Windows = std::vector<Window>;

TEST(SlidingWindows, AreThoseOfHuggingFacesGuide) {
  EXPECT_EQ(sliding_windows(0, 10, 4, 2), (Windows{{0, 1, 4}, {2, 4, 6}, {4, 6, 8}, {6, 8, 10}}));
  EXPECT_EQ(sliding_windows(0, 9, 4, 3), (Windows{{0, 1, 4}, {3, 4, 7}, {6, 7, 9}}));
  EXPECT_EQ(sliding_windows(0, 3, 4, 2), (Windows{{0, 1, 3}}));
  EXPECT_EQ(sliding_windows(0, 3, std::size_t{1} << 40, 1), (Windows{{0, 1, 3}}));
}

TEST(SlidingWindows, StartAtTheStartOfTheirText) {
  EXPECT_EQ(sliding_windows(7, 13, 4, 2), (Windows{{7, 8, 11}, {9, 11, 13}}));
  EXPECT_EQ(sliding_windows(7, 8, 4, 2), Windows{});
  EXPECT_EQ(sliding_windows(7, 7, 4, 2), Windows{});
}

TEST(SlidingWindows, WithoutOverlapScoreTheNextToken) {
  EXPECT_EQ(sliding_windows(0, 9, 4, 4), (Windows{{0, 1, 5}, {4, 5, 9}}));
  EXPECT_EQ(sliding_windows(0, 8, 4, 4), (Windows{{0, 1, 5}, {4, 5, 8}}));
}

TEST(SlidingWindows, ScoreEachTokenExceptTheFirstOnce) {
  for (std::size_t tokens = 2; tokens < 40; ++tokens) {
    for (std::size_t size = 2; size < 12; ++size) {
      for (std::size_t stride = 1; stride <= size; ++stride) {
        const Windows windows = sliding_windows(0, tokens, size, stride);
        std::size_t next = 1;
        for (const Window& window : windows) {
          EXPECT_EQ(window.first_scored, next);
          EXPECT_GT(window.end, window.first_scored);
          EXPECT_LE(window.end - 1 - window.begin, size) << "positions in its context";
          const std::size_t promised = window.begin == 0 ? 1 : std::max<std::size_t>(size - stride, 1);
          EXPECT_GE(window.first_scored - window.begin, promised);
          next = window.end;
        }
        EXPECT_EQ(next, tokens);
        EXPECT_EQ(scored_tokens(windows), tokens - 1);
      }
    }
  }
}

}  // namespace
}  // namespace minimind
