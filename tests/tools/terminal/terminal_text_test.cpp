#include "tools/terminal/terminal_text.h"

#include <gtest/gtest.h>

namespace minimind {
namespace {

TEST(TerminalText, KeepsPlainText) {
  const std::string text = "五言绝句《山居》\n\tété 👩‍👩‍👧 ❤️";
  EXPECT_EQ(terminal_text(text), text);
}

TEST(TerminalText, EscapesControlCharacters) {
  EXPECT_EQ(terminal_text("\x1b[31mred\x1b]0;title\x07"), "^[[31mred^[]0;title^G");
  EXPECT_EQ(terminal_text("a\bb\x7f"), "a^Hb^?");
  EXPECT_EQ(terminal_text(std::string("\0", 1)), "^@");
  EXPECT_EQ(terminal_text("\xC2\x9B"
                          "31m"),
            "<U+009B>31m");
  EXPECT_EQ(terminal_text("\x9B"
                          "31m"),
            "\xEF\xBF\xBD"
            "31m");
}

TEST(TerminalText, EscapesCharactersThatReorderOrHide) {
  EXPECT_EQ(terminal_text("a\u202Eb\u2066c\uFEFF\U000E0041"), "a<U+202E>b<U+2066>c<U+FEFF><U+E0041>");
}

TEST(TerminalText, DropsAReturnBeforeANewline) {
  EXPECT_EQ(terminal_text("a\r\nb\rc\r"), "a\nb^Mc^M");
  EXPECT_EQ(terminal_text("\r\r\n"), "^M\n");
}

TEST(TerminalText, IsTheSameForAnyPiecesOfAStream) {
  const std::string text =
      "山\r\n\x1b[2J\xC2\x9B"
      "é\r";
  TerminalText stream;
  std::string shown;
  for (const char c : text) shown += stream.push({&c, 1});
  EXPECT_EQ(shown + stream.finish(), terminal_text(text));
}

}  // namespace
}  // namespace minimind
