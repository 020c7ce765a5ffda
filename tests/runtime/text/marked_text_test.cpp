#include "runtime/text/marked_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace minimind {
namespace {

TEST(MarkedText, MarksFollowTheBytesThatAreCopied) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    // A byte is a capital letter if it is marked.
    MarkedText text;
    for (int piece = 0; piece < 6; ++piece) {
      const std::string letters(random() % 4, static_cast<char>('a' + random() % 26));
      if (random() % 2 == 0) {
        text.append(letters);
      } else {
        std::string capitals = letters;
        for (char& c : capitals) c = static_cast<char>(c - 'a' + 'A');
        text.append(MarkedText::all(capitals));
      }
    }
    const std::string_view whole = text.bytes;
    const std::size_t begin = random() % (whole.size() + 1), size = random() % (whole.size() - begin + 1);
    MarkedText result = text.part(whole.substr(begin, size));
    result.append(text);
    ASSERT_EQ(result.bytes, std::string(whole.substr(begin, size)) + text.bytes);
    std::size_t first = SIZE_MAX;
    for (std::size_t i = result.bytes.size(); i-- > 0;) {
      if (result.bytes[i] < 'a') first = i;
      ASSERT_EQ(result.marks.first_from(i), first) << result.bytes << " at " << i;
    }
    std::size_t end = 0;
    for (const TextMarks::Range& range : result.marks.ranges()) {
      EXPECT_LT(range.begin, range.end);
      EXPECT_TRUE(range.begin > end || end == 0);
      end = range.end;
    }
  }
}

TEST(MarkedText, AReplacementIsMarkedIfWhatItReplacesIs) {
  MarkedText text("a");
  text.append(MarkedText::all("b"));
  MarkedText result;
  for (std::size_t i = 0; i < 2; ++i) result.append_instead(text, std::string_view(text.bytes).substr(i, 1), "xyz");
  EXPECT_EQ(result.bytes, "xyzxyz");
  EXPECT_EQ(result.marks.ranges(), (std::vector<TextMarks::Range>{{3, 6}}));
}

}  // namespace
}  // namespace minimind
