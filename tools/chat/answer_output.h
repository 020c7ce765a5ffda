#pragma once

#include <cstdio>
#include <string>

#include "runtime/chat/conversation.h"
#include "tools/chat/notices.h"
#include "tools/terminal/terminal_text.h"

namespace minimind {

// Where answers go while they come, and when they are whole.
class AnswerOutput {
 public:
  AnswerOutput() = default;
  AnswerOutput(const AnswerOutput&) = delete;
  AnswerOutput& operator=(const AnswerOutput&) = delete;
  virtual ~AnswerOutput() = default;

  // A piece of the answer as the model wrote it; the events that it completes follow.
  virtual void written(std::string_view piece) = 0;
  virtual void event(const AnswerEvent& event) = 0;
  virtual void finish(const Answer& answer) = 0;
};

// The answer's text as it comes, and a newline behind it unless it ends with one. On a terminal thoughts are shown
// dimmed, calls of tools as "→ name(arguments)", and nothing in the text can drive the terminal; elsewhere standard
// output gets the text alone, exactly as it is, calls are told beside it, and thoughts are left out.
class TextOutput : public AnswerOutput {
 public:
  // `show_thinking`: a standard output that is no terminal gets all that the model wrote, byte for byte: thoughts,
  // calls and the tags around them, as far as the model and not the prompt wrote them.
  TextOutput(const ChatNotices& notices, bool show_thinking);

  void written(std::string_view piece) override;
  void event(const AnswerEvent& event) override;
  void finish(const Answer& answer) override;

 private:
  enum class Part { nothing, thought, text, call };

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
  bool has_no_call_ = false;  // a <tool_call> that is none
};

// One JSON object a line, when the answer is whole.
class JsonOutput : public AnswerOutput {
 public:
  void written(std::string_view) override {}
  void event(const AnswerEvent&) override {}
  void finish(const Answer& answer) override;
};

// "name(arguments)"
std::string call_text(const ToolCall& call);

// The object that --json prints.
std::string answer_json(const Answer& answer);

}  // namespace minimind
