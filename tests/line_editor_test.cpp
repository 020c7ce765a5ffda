#include "tools/line_editor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/pseudo_terminal.h"
#include "tools/terminal.h"

namespace minimind {
namespace {

// Reads lines and prints each between brackets, newlines as |, until the input ends.
int echo_lines() {
  setenv("TERM", "xterm", 1);
  setenv("HOME", "/nonexistent", 1);
  setenv("LC_ALL", "C", 1);
  if (!use_utf8_characters()) return 3;
  LineEditor editor(stderr, {"/reset", "/regenerate", "/undo"}, watch_terminal_signals());
  editor.remember("an earlier 句");
  editor.remember("two\nlines");
  std::fputs("ready\n", stderr);
  while (true) {
    EditedLine line = editor.read(">", false);
    for (char& c : line.text) c = c == '\n' ? '|' : c;
    if (line.end == LineEnd::end_of_input) return 0;
    std::fprintf(stderr, "%s[%s]\n", line.end == LineEnd::cancelled ? "cancelled" : "entered", line.text.c_str());
  }
}

class LineEditorTest : public testing::Test {
 protected:
  void expect(std::string_view keys, const std::string& shown) {
    terminal_.type(keys);
    EXPECT_TRUE(terminal_.wait_for(shown)) << shown << " is not in " << testing::PrintToString(terminal_.shown());
    if (shown.ends_with(']')) terminal_.wait_for("> ");
  }
  void SetUp() override { ASSERT_TRUE(terminal_.wait_for("> ")) << terminal_.shown(); }

  PseudoTerminal terminal_{echo_lines};
};

TEST_F(LineEditorTest, BackspaceAndArrowsGoByWholeCharacters) {
  expect("你好吗\x7f\r", "entered[你好]");
  expect("山水\x1b[D\x1b[D月\x1b[C花\r", "entered[月山花水]");
  expect("abc\x01x\x05y\x02\x04\r", "entered[xabc]");
  expect("end\x1b[Hx\x1b[Fy\x1b[D\x1b[3~\r", "entered[xend]");
}

TEST_F(LineEditorTest, ArrowsAndCtrlRFindEarlierEntriesOfSeveralLines) {
  expect("\x1b[A\r", "entered[two|lines]");
  expect("\x1b[A\x1b[A\r", "entered[an earlier 句]");
  expect(
      "\x12"
      "earl\r\r",
      "entered[an earlier 句]");
}

TEST_F(LineEditorTest, PastedTextStaysTogether) {
  expect("<\x1b[200~a\r\tb\nc\n\x1b[201~>\r", "entered[<a|\tb|c>]");
  expect("\x1b[200~\x1b[201~\r", "entered[]");
  EXPECT_NE(terminal_.shown().find("\x1b[?2004h"), std::string::npos);
}

TEST_F(LineEditorTest, AltEnterBeginsANewLine) {
  expect("a\x1b\rb\r", "entered[a|b]");
}

// Ctrl-C also takes what the program has not read yet, so each line is seen before.
TEST_F(LineEditorTest, CtrlCCancelsTheLine) {
  expect("你好", "你好");
  expect("\x03", "cancelled[你好]");
  expect("\x03", "cancelled[]");
  expect("\x1b[200~never ended\x03", "cancelled[]");
  expect("\x12", "bck:");
  expect("\x03", "cancelled[");
  terminal_.wait_for("> ");
  expect("new\r", "entered[new]");
}

TEST_F(LineEditorTest, CtrlDEndsTheInputOnAnEmptyLineOnly) {
  expect("ab\x02\x04\r", "entered[a]");
  terminal_.type("\x04");
  EXPECT_EQ(terminal_.status(), 0);
}

TEST_F(LineEditorTest, TheEndOfTheTerminalEndsTheInput) {
  terminal_.signal(SIGHUP);
  EXPECT_EQ(terminal_.status(), 0);
}

TEST_F(LineEditorTest, TabCompletesWords) {
  expect("/u\t\r", "entered[/undo ]");
  expect("/r\t\r", "entered[/re]");
  expect("/re\t", "/reset  /regenerate");
  expect("g\t\r", "entered[/regenerate ]");
  expect("x\t\r", "entered[x]");
}

TEST_F(LineEditorTest, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  expect(
      "a\xff"
      "b\r",
      "entered[a\uFFFDb]");
}

TEST(Completions, AreTheWordsThatBeginSoAndWhatTheyShare) {
  const std::vector<std::string> words = {"/reset", "/regenerate", "/undo"};
  EXPECT_EQ(completions(words, "/r").words, (std::vector<std::string>{"/reset", "/regenerate"}));
  EXPECT_EQ(completions(words, "/r").common, "/re");
  EXPECT_EQ(completions(words, "/undo").common, "/undo");
  EXPECT_TRUE(completions(words, "x").words.empty());
}

}  // namespace
}  // namespace minimind
