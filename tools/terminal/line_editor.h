#pragma once

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/terminal/line_edit.h"
#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_screen.h"
#include "tools/terminal/signals.h"
#include "tools/terminal/terminal.h"

namespace minimind {

enum class LineEnd { entered, cancelled, end_of_input };

struct EditedLine {
  LineEnd end;
  std::string text;  // without its newline; text that was pasted may hold some. A line that was cancelled has it, too
};

// Reads lines that a person types on standard input, and shows them on `screen`: with the keys that shells have, a
// history, words to complete and pasted text that stays together. Ctrl-C cancels the line, Ctrl-D on an empty one ends
// the input, Ctrl-Z suspends the program.
class LineEditor {
 public:
  // `words` are what Tab completes at the beginning of a line. The threads of the program must not take the signals of
  // watch_terminal_signals().
  LineEditor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals);

  // Puts an entry, of any number of lines, after those that the arrows and Ctrl-R find.
  void remember(const std::string& entry) { edit_.remember(entry); }

  // A blank follows the prompt, which is bold with `styles`.
  EditedLine read(const std::string& prompt, bool styles);

 private:
  EditedLine read_line();
  void perform(LineAction action);
  bool react_to_signals();
  bool wait_for_input();
  bool read_input(short events);
  void suspend();
  void draw();
  void show(const std::string& bytes);

  std::FILE* screen_;
  TerminalSignals& signals_;
  bool escapes_;
  LineEdit edit_;
  LineKeys keys_;
  LineScreen line_;
  bool shown_ = false;  // what edit_ holds now
  std::optional<RawInput> raw_;
  sigset_t let_in_{};  // the signal mask while it waits
};

}  // namespace minimind
