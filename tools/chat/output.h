#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/chat/conversation.h"
#include "tools/terminal/language.h"
#include "tools/terminal/terminal_text.h"

namespace minimind {

// The output of notices: everything in a conversation that is not part of an answer.
class ChatNotices {
 public:
  // For a user, on the screen of the conversation.
  static ChatNotices on_screen(std::FILE* screen);
  // For scripts: on stderr as note() does; only errors if `quiet`.
  static ChatNotices for_scripts(bool quiet);

  // Prints a notice of one line in the current language.
  template <class... Args>
  void say(fmt::format_string<Args...> english, Args&&... args) const {
    say_text(localized(english, std::forward<Args>(args)...));
  }
  // Prints requested text of one or more lines.
  void show(std::string_view lines) const;
  // Prints an error.
  void complain(std::string_view text) const;

 private:
  ChatNotices(std::FILE* file, bool for_scripts, bool quiet);

  void say_text(std::string_view text) const;

  std::FILE* file_;
  bool for_scripts_;
  bool quiet_;
  bool styles_;
};

// The output of answers: pieces during generation, and the complete answer.
class AnswerOutput {
 public:
  AnswerOutput() = default;
  AnswerOutput(const AnswerOutput&) = delete;
  AnswerOutput& operator=(const AnswerOutput&) = delete;
  virtual ~AnswerOutput() = default;

  // Receives a piece of the answer as the model wrote it. The events that it completes follow.
  virtual void written(std::string_view piece) = 0;
  virtual void event(const AnswerEvent& event) = 0;
  virtual void finish(const Answer& answer) = 0;
};

// Prints the answer's text during generation, then a newline unless it ends with one. On a terminal, thinking is
// dimmed, tool calls are shown as "→ name(arguments)", and control characters are escaped. Otherwise stdout gets only
// the text, verbatim; tool calls become notices, and thinking is omitted.
class TextOutput : public AnswerOutput {
 public:
  // `show_thinking`: if stdout is not a terminal, prints all that the model wrote, byte for byte: thinking, calls and
  // their tags, except tags that were part of the prompt.
  TextOutput(const ChatNotices& notices, bool show_thinking);

  void written(std::string_view piece) override;
  void event(const AnswerEvent& event) override;
  void finish(const Answer& answer) override;

 private:
  enum class Part { nothing, thinking, text, call };

  void begin(Part part);
  void end_part();
  void write(std::string_view text, bool dim);
  void call(const ToolCall& call);

  const ChatNotices& notices_;
  bool on_terminal_;
  bool as_written_;
  bool styles_;
  TerminalText safe_;
  Part part_ = Part::nothing;
  bool at_line_begin_ = true;
  bool has_no_call_ = false;  // a <tool_call> without a valid call
};

// Prints one line of JSON per complete answer.
class JsonOutput : public AnswerOutput {
 public:
  void written(std::string_view) override {}
  void event(const AnswerEvent&) override {}
  void finish(const Answer& answer) override;
};

// Returns "name(arguments)".
std::string call_text(const ToolCall& call);

// Returns the JSON object that --json prints.
std::string answer_json(const Answer& answer);

}  // namespace minimind
