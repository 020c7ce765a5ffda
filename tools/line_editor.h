#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/terminal_signals.h"

namespace minimind {

enum class LineEnd { entered, cancelled, end_of_input };

struct EditedLine {
  LineEnd end;
  std::string text;  // without its newline; text that was pasted may hold some. What was cancelled is here, too
};

// Reads lines that a person types on standard input, and shows them on `screen`: with libedit's keys, wide characters,
// a history, words to complete and pasted text that stays together (bracketed paste). Ctrl-C cancels the line, Ctrl-D
// on an empty one ends the input, Ctrl-Z suspends the program.
class LineEditor {
 public:
  // `words` are what Tab completes at the beginning of a line. The C library's characters have to be UTF-8, see
  // use_utf8_characters(). Throws Error when libedit cannot be set up.
  LineEditor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  // Puts an entry, of any number of lines, behind those that the arrows and Ctrl-R find.
  void remember(const std::string& entry);

  // A blank follows the prompt, which is bold with `styles`.
  EditedLine read(const std::string& prompt, bool styles);

 private:
  class Editor;
  std::unique_ptr<Editor> editor_;
};

// The words that begin with `typed`, and what all of them go on with.
struct Completions {
  std::vector<std::string> words;
  std::string common;  // the longest common beginning, at least `typed`
};
Completions completions(const std::vector<std::string>& words, const std::string& typed);

}  // namespace minimind
