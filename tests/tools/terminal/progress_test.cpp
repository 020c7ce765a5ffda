#include "tools/terminal/progress.h"

#include <gtest/gtest.h>

namespace minimind {
namespace {

constexpr auto tokens = ProgressUnit::tokens;

TEST(ProgressLine, HasABarAsWideAsTheTerminalAllows) {
  EXPECT_EQ(progress_line("logits", 12, 27, tokens, "", 42), "logits [=====>       ] 44% 12 of 27 tokens");
  EXPECT_EQ(progress_line("logits", 12, 27, tokens, "", 500).size(),
            std::string("logits [] 44% 12 of 27 tokens").size() + 40);
}

TEST(ProgressLine, FitsTheColumnsAndDropsTheBarFirst) {
  EXPECT_EQ(progress_line("logits", 1, 4, tokens, "perplexity 7.5", 44), "logits 25% 1 of 4 tokens perplexity 7.5");
  EXPECT_EQ(progress_line("logits", 1, 4, tokens, "perplexity 7.5", 38), "logits 25% 1 of 4 tokens");
  EXPECT_EQ(progress_line("logits", 1, 4, tokens, "", 20), "25% 1 of 4 tokens");
  EXPECT_EQ(progress_line("logits", 1, 4, tokens, "", 10), "25%");
  for (std::size_t columns = 0; columns < 200; ++columns) {
    EXPECT_LE(progress_line("logits", 1, 4, tokens, "perplexity 7.5", columns).size(), columns);
  }
}

TEST(ProgressLine, IsFullAtTheEndAndNotBefore) {
  EXPECT_EQ(progress_line("x", 0, 1000, tokens, "", 40), "x [>               ] 0% 0 of 1000 tokens");
  EXPECT_NE(progress_line("x", 999, 1000, tokens, "", 40).find(">] 99%"), std::string::npos);
  EXPECT_NE(progress_line("x", 1000, 1000, tokens, "", 40).find("=] 100%"), std::string::npos);
  EXPECT_NE(progress_line("x", 0, 0, tokens, "", 40).find("=] 100%"), std::string::npos);
}

TEST(ProgressLine, ShowsBytesAsMegabytes) {
  EXPECT_EQ(progress_line("convert", 1'250'000, 10'000'000, ProgressUnit::bytes, "", 30), "convert 12% 1.2 of 10.0 MB");
}

}  // namespace
}  // namespace minimind
