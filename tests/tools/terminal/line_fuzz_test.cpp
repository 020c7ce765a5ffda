#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/tools/terminal/typed_line.h"
#include "tools/terminal/line_text.h"

namespace minimind {
namespace {

// Returns random input: text in several scripts, every key, pastes, and meaningless bytes.
std::string random_input(std::mt19937& random) {
  static const std::vector<std::string> inputs = {
      "a",
      "word ",
      " ",
      "北京",
      "第二条消息一二三四五",
      "，",
      "é",
      "e\u0301",
      "\u0301",
      "\u200b",
      "👩‍👩‍👧",
      "❤️",
      "🇨🇳",
      "ｶ",
      "กำ",
      "한국어",
      "\u1112\u1161\u11ab",
      "\u202e",
      "\xff",
      "\xe4\xbd",
      "\r",
      "\n",
      "\t",
      "\x1b\r",
      "\x7f",
      "\x08",
      "\x01",
      "\x02",
      "\x04",
      "\x05",
      "\x06",
      "\x07",
      "\x0b",
      "\x0e",
      "\x10",
      "\x12",
      "\x14",
      "\x15",
      "\x17",
      "\x19",
      "\x1f",
      "\x1b[A",
      "\x1b[B",
      "\x1b[C",
      "\x1b[D",
      "\x1bOH",
      "\x1b[F",
      "\x1b[3~",
      "\x1b[1;5C",
      "\x1b[1;5D",
      "\x1b"
      "b",
      "\x1b"
      "f",
      "\x1b"
      "d",
      "\x1b\x7f",
      "\x1b",
      "\x1b[",
      "\x1b[99;",
      "\x1b[200~",
      "\x1b[201~",
      "\x1b[[A",
      "/re",
      "\x1b[200~pasted\r\n文字\t一 \x1b[31m\r\x1b[201~",
  };
  if (random() % 40 == 0) return "\x1b[200~" + std::string(random() % 700, 'x') + "\x1b[201~";
  return inputs[random() % inputs.size()];
}

std::u32string without_blanks(std::u32string text) {
  std::erase(text, U' ');
  return text;
}

// Returns the text that a large enough screen must show for `text`.
std::u32string expected(std::u32string_view text, std::size_t columns) {
  std::u32string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at + character_end(text.substr(at), 0);
    const auto character = text.substr(at, end - at);
    at = end;
    if (character == U"\n" || character == U"\t") continue;
    const ShownCharacter how = show_character(character);
    shown += how.columns > columns ? U"?" : code_points_of(how.bytes);
  }
  return without_blanks(shown);
}

class Session {
 public:
  explicit Session(unsigned seed) : random_(seed) {}

  void step() {
    if (random_() % 8 == 0) {
      const std::size_t columns = random_() % 3 == 0 ? 1 + random_() % 6 : 1 + random_() % 120;
      line_.resize(columns, 1 + random_() % 60);
    } else {
      line_.type(random_input(random_));
    }
    check();
  }

 private:
  void check() {
    const LineView view = line_.view();
    const LineLayout layout = lay_out(view, line_.columns());
    ASSERT_LT(layout.cursor_column, line_.columns());
    for (const LineRow& row : layout.rows) {
      std::size_t width = 0;
      for (const std::size_t w : row.widths) width += w;
      ASSERT_LE(width, line_.columns());
    }
    ASSERT_EQ(line_.screen().cursor_column(), layout.cursor_column);
    if (layout.rows.size() > line_.rows()) return check_part(layout);
    const std::u32string prompt = expected(view.prompt, line_.columns()), text = expected(view.text, line_.columns());
    ASSERT_TRUE(line_.screen().text().ends_with(prompt + text)) << to_utf8(line_.screen().text());
    // The text after the cursor is the same as on the screen.
    std::size_t at = 0;
    while (at < view.cursor) at += character_end(std::u32string_view(view.text).substr(at), 0);
    const std::size_t after = expected(std::u32string_view(view.text).substr(at), line_.columns()).size();
    ASSERT_EQ(line_.screen().text().size() - line_.screen().text_before_cursor().size(), after)
        << testing::PrintToString(to_utf8(view.text)) << " at " << view.cursor;
    ASSERT_EQ(line_.screen().text().substr(0, 5), U"above");
  }

  // A line larger than the screen fills it.
  void check_part(const LineLayout& layout) {
    ASSERT_LT(line_.screen().cursor_row(), line_.rows());
    ASSERT_LE(line_.screen().cursor_row(), layout.cursor_row);
  }

  std::mt19937 random_;
  TypedLine line_{"above\n"};
};

// MINIMIND_FUZZ_STEPS: the number of events instead of a small one.
TEST(LineFuzz, TheScreenShowsTheTextAndTheCursor) {
  const char* const given = std::getenv("MINIMIND_FUZZ_STEPS");
  const std::size_t steps = given ? std::stoul(given) : 2000;
  for (unsigned seed = 0; seed * 250 < steps; ++seed) {
    Session session(seed);
    for (std::size_t i = 0; i < 250; ++i) {
      session.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", event " << i;
    }
  }
}

}  // namespace
}  // namespace minimind
