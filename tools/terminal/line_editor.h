#pragma once

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/terminal/interrupt.h"
#include "tools/terminal/line_edit.h"
#include "tools/terminal/line_keys.h"
#include "tools/terminal/line_screen.h"
#include "tools/terminal/terminal.h"

namespace minimind {

enum class LineEnd { entered, cancelled, end_of_input };

struct EditedLine {
  LineEnd end;
  std::string text;  // without its final newline; pasted text may contain others. Also set for a cancelled line
};

// Reads lines that a user types on stdin and shows them on `screen`. It has the keys of shells, a history, completion
// of words and multi-line paste. Ctrl-C cancels the line, Ctrl-D on an empty line ends the input, Ctrl-Z suspends the
// program.
class LineEditor {
 public:
  // Tab completes `words` at the start of a line. Other threads of the program must not receive the signals of
  // watch_terminal_signals().
  LineEditor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals);

  // Adds an entry of one or more lines to the history, for the arrows and Ctrl-R.
  void remember(const std::string& entry) { edit_.remember(entry); }

  // Reads a line. The prompt is followed by a space and is bold with `styles`.
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
  bool shown_ = false;  // the screen shows the current edit_
  std::optional<RawInput> raw_;
  sigset_t let_in_{};  // the signal mask during waits
};

}  // namespace minimind
