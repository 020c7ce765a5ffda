#include "tools/terminal/line_editor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "tests/support/cases.h"
#include "tests/support/pseudo_terminal.h"
#include "tools/terminal/interrupt.h"
#include "weights/base/parallel.h"

namespace minimind {
namespace {

// Reads lines and prints each between brackets, newlines as |, until the input ends.
int echo_lines_on(const char* terminal) {
  setenv("TERM", terminal, 1);
  setenv("HOME", "/nonexistent", 1);
  setenv("LC_ALL", "C", 1);
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

int echo_lines() {
  return echo_lines_on("xterm");
}

class LineEditorTest : public testing::Test {
 protected:
  void expect(std::string_view keys, const std::string& shown) {
    terminal_.type(keys);
    EXPECT_TRUE(terminal_.wait_for(shown)) << shown << " is not in " << testing::PrintToString(terminal_.shown());
    if (shown.ends_with(']')) terminal_.wait_for("> ");
  }
  void SetUp() override { ASSERT_TRUE(terminal_.wait_for("> ")) << terminal_.shown(); }
  void TearDown() override {
    if (!ended_) terminal_.type("\x04");
    EXPECT_EQ(terminal_.status(), 0);
  }

  PseudoTerminal terminal_{echo_lines};
  bool ended_ = false;  // otherwise Ctrl-D ends it
};

TEST_F(LineEditorTest, KeysMoveByWholeCharacters) {
  expect("你好吗\x7f\r", "entered[你好]");
  expect("山水\x1b[D\x1b[D月\x1b[C花\r", "entered[月山花水]");
  expect("abc\x01x\x05y\x02\x04\r", "entered[xabc]");
  expect("end\x1b[Hx\x1b[Fy\x1b[D\x1b[3~\r", "entered[xend]");
}

TEST_F(LineEditorTest, ArrowsAndCtrlRFindEarlierEntries) {
  expect("\x1b[A\r", "entered[two|lines]");
  expect("\x1b[A\x1b[A\r", "entered[an earlier 句]");
  expect(
      "\x12"
      "earl\r",
      "entered[an earlier 句]");
  expect("\x12句\r", "entered[an earlier 句]");
  expect("draft\x12句\x07\r", "entered[draft]");
  expect("draft\x1b[A\x1b[B!\r", "entered[draft!]");
}

TEST_F(LineEditorTest, ASingleEscapeCancelsTheSearch) {
  terminal_.type("kept\x12");
  EXPECT_TRUE(terminal_.wait_for("(search: "));
  terminal_.type("句\x1b");
  EXPECT_TRUE(terminal_.wait_for("> "));
  expect("!\r", "entered[kept!]");
}

TEST_F(LineEditorTest, WordsMayBeChineseOrLatin) {
  expect("你好，世界\x17\r", "entered[你好，]");
  expect(
      "用model推理\x1b"
      "b\x1b"
      "b-\r",
      "entered[用-model推理]");
  expect(
      "一二 三四\x01\x1b"
      "f-\r",
      "entered[一二- 三四]");
  expect(
      "一二 three\x01\x1b"
      "d\r",
      "entered[ three]");
  expect("一二 three\x17\x17\x19!\r", "entered[一二 three!]");
}

TEST_F(LineEditorTest, ALineSurvivesEverySizeOfTheTerminal) {
  expect("第二条消息一二三四五", "五");
  for (const std::size_t columns : {20, 10, 5, 2, 1, 300, 80}) {
    const bool has_room = columns > 2;
    terminal_.resize(columns, has_room ? 10 : 1);
    expect("六", has_room ? "六" : "\x1b[?7h");
  }
  expect("\r", "entered[第二条消息一二三四五六六六六六六六]");
}

TEST_F(LineEditorTest, CtrlZSuspendsAndKeepsTheLine) {
  expect("ab", "ab");
  terminal_.type("\x1a");
  EXPECT_TRUE(terminal_.wait_for("\x1b[?2004l"));
  terminal_.signal(SIGCONT);
  expect("c\r", "entered[abc]");
}

TEST_F(LineEditorTest, PastedTextStaysTogether) {
  expect("<\x1b[200~a\r\tb\nc\n\x1b[201~>\r", "entered[<a|\tb|c>]");
  expect("\x1b[200~\x1b[201~\r", "entered[]");
  EXPECT_NE(terminal_.shown().find("\x1b[?2004h"), std::string::npos);
}

TEST_F(LineEditorTest, AltEnterStartsANewLine) {
  expect("a\x1b\rb\r", "entered[a|b]");
}

// Ctrl-C also discards input that the program has not read yet, so this waits until each line is shown.
TEST_F(LineEditorTest, CtrlCCancelsTheLine) {
  expect("你好", "你好");
  expect("\x03", "cancelled[你好]");
  expect("\x03", "cancelled[]");
  expect("\x1b[200~never ended\x03", "cancelled[]");
  expect("\x12", "(search: )");
  expect("\x03", "cancelled[");
  terminal_.wait_for("> ");
  expect("new\r", "entered[new]");
}

TEST_F(LineEditorTest, CtrlDOnAnEmptyLineEndsTheInput) {
  expect("ab\x02\x04\r", "entered[a]");
}

TEST_F(LineEditorTest, AClosedTerminalEndsTheInput) {
  terminal_.signal(SIGHUP);
  ended_ = true;
}

TEST(LineEditor, AHangupWithoutASignalEndsTheInput) {
  PseudoTerminal terminal([] {
    int typing = -1, reading = -1;
    if (openpty(&typing, &reading, nullptr, nullptr, nullptr) != 0 || dup2(reading, STDIN_FILENO) < 0) return 2;
    close(reading);
    close(typing);
    LineEditor editor(stderr, {}, watch_terminal_signals());
    return editor.read(">", false).end == LineEnd::end_of_input ? 0 : 1;
  });
  EXPECT_EQ(terminal.status(), 0);
}

TEST(LineEditor, ATerminalWithoutEscapeSequencesShowsOneRow) {
  PseudoTerminal terminal([] { return echo_lines_on("dumb"); });
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("abc");
  ASSERT_TRUE(terminal.wait_for("> abc\r> abc"));
  terminal.type("\x7f\x7f");
  ASSERT_TRUE(terminal.wait_for("> a  \r> a"));
  terminal.type("\x0c");
  ASSERT_TRUE(terminal.wait_for("\n\r> a"));
  terminal.type("\x1b\rb\r");
  ASSERT_TRUE(terminal.wait_for("> a^Jb"));
  ASSERT_TRUE(terminal.wait_for("entered[a|b]"));
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
  EXPECT_EQ(terminal.shown().find('\x1b'), std::string::npos) << terminal.shown();
}

TEST_F(LineEditorTest, TabCompletesWords) {
  expect("/u\t\r", "entered[/undo ]");
  expect("/r\t\r", "entered[/re]");
  expect("/re\t", "/reset  /regenerate");
  expect("g\t\r", "entered[/regenerate ]");
  expect("x\t\r", "entered[x]");
}

TEST_F(LineEditorTest, MalformedUtf8BecomesReplacements) {
  expect(
      "a\xff"
      "b\r",
      "entered[a\uFFFDb]");
}

// With other threads next to the one that reads.
int echo_lines_of_a_team() {
  std::optional<HeldSignals> held(std::in_place);
  for (int i = 0; i < 3; ++i) std::thread([] { pause(); }).detach();
  held.reset();
  return echo_lines();
}

// MINIMIND_INTERRUPTS: the number of interrupts instead of a small one.
TEST(LineEditor, NoInterruptIsLost) {
  if (is_emulated()) GTEST_SKIP() << "the emulator crashes if a forked child starts threads";
  const char* const given = std::getenv("MINIMIND_INTERRUPTS");
  const std::size_t count = given ? std::stoul(given) : 3000;
  PseudoTerminal terminal(echo_lines_of_a_team);
  ASSERT_TRUE(terminal.wait_for("> "));
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      terminal.signal(SIGINT);
      ASSERT_TRUE(terminal.wait_for("cancelled[]")) << i;
    } else if (i % 3 == 1) {
      terminal.type("\x03next\r");
      ASSERT_TRUE(terminal.wait_for("cancelled[]")) << i;
      ASSERT_TRUE(terminal.wait_for("entered[next]")) << i;
    } else {
      terminal.type("x");
      ASSERT_TRUE(terminal.wait_for("x")) << i;
      terminal.type("\x03");
      ASSERT_TRUE(terminal.wait_for("cancelled[x]")) << i;
    }
    // Some interrupts come before the line is shown. Typed text must come after, because Ctrl-C discards it.
    if (i % 3 == 1 || i % 2 == 0) terminal.wait_for("> ");
  }
}

TEST(Completions, AreTheWordsWithThePrefix) {
  const std::vector<std::string> words = {"/reset", "/regenerate", "/undo"};
  EXPECT_EQ(completions(words, "/r").words, (std::vector<std::string>{"/reset", "/regenerate"}));
  EXPECT_EQ(completions(words, "/r").common, "/re");
  EXPECT_EQ(completions(words, "/undo").common, "/undo");
  EXPECT_TRUE(completions(words, "x").words.empty());
}

}  // namespace
}  // namespace minimind
