#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/message.h"

namespace minimind {

inline constexpr std::array<std::string_view, 4> answer_tags = {"<think>", "</think>", "<tool_call>", "</tool_call>"};

// Where an answer begins.
enum class ThinkState {
  none,    // the prompt says nothing of thinking
  open,    // it ends inside a thought, which the answer continues with
  closed,  // it ends with a thought that is over, an empty one as a rule
};

// What the prompt that a chat template wrote says of it, from its last characters.
ThinkState think_state(std::string_view prompt);

// A piece of an answer.
struct AnswerEvent {
  enum class Kind {
    thought,    // text: the next piece of a thought
    text,       // text: the next piece of the answer itself
    tool_call,  // call: a whole one
    not_a_call  // text: the next piece of the answer itself, with a <tool_call> that begins no call
  };
  Kind kind = Kind::text;
  std::string text;
  ToolCall call;  // its id is empty

  bool operator==(const AnswerEvent&) const = default;
};

// Adds the event to a message of the assistant. A call gets the id "call_N", N being `next_call`, which grows.
void add_event(AnswerEvent& event, Message& message, std::size_t& next_call);

// Splits the stream of an answer's text at <think>, </think>, <tool_call> and </tool_call>. Text that may be the start
// of a tag is held back until that is certain, and so is whitespace, until it is known what follows it: how the stream
// was cut changes nothing but the pieces' borders.
//   - Thoughts, joined, are without their tags and the line feeds around them. Thoughts of whitespace alone give no
//     event; several are an empty line apart. A thought starts the answer or follows another one: <think> after text
//     of the answer is text. So is a </think> outside of a thought, and calls inside of one are thinking.
//   - Text and not_a_call, joined, are what the model wrote, byte for byte, without thinking and whole calls.
//   Whitespace
//     before a thought, line feeds after it, and whitespace between calls and the start or the end of the
//     answer separate these and go too. Line feeds that an answer starts with stay, also where the prompt has closed a
//     thought before them.
//   - A call, see parse_tool_call(), ends at </tool_call>, unless that is inside of a JSON string, or with the answer.
//     If what is before that end is no call, strings mean nothing: it ends at the first </tool_call>, and the answer
//     continues after it.
// No event has a tag that the model did not write: what is not closed when the answer ends stays open.
class AnswerParser {
 public:
  explicit AnswerParser(ThinkState state);

  // Appends what is certain now to `events`.
  void push(std::string_view text, std::vector<AnswerEvent>& events);

  // The answer is over.
  void finish(std::vector<AnswerEvent>& events);

 private:
  using Events = std::vector<AnswerEvent>;
  enum class Place { start, thought, text, call };

  bool leave(Events& events);
  bool leave_start();
  bool leave_thought(Events& events);
  bool leave_text(Events& events);
  bool leave_call(Events& events);
  std::size_t find_call_end();
  void take_call(std::size_t end, Events& events);
  void show_thought(std::string_view text, Events& events);
  void show_text(AnswerEvent::Kind kind, std::string_view text, Events& events);

  Place place_;
  std::string held_;
  bool thought_begun_ = false;  // something of the thought that is being read was shown
  bool thought_shown_ = false;
  bool text_shown_ = false;
  bool behind_call_ = false;  // nothing but whitespace came since one
  std::string space_;         // before a call, in the text that may continue after it
  std::string_view unshown_;  // characters that the text does not start with: they separate it from what was before
  // How far the call that is being read was searched for its end, and what was found there.
  std::size_t searched_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool broken_ = false;  // a string has a character that no JSON string has
};

// The message of a whole answer, whose first call is number `first_call`.
Message parse_answer(std::string_view text, ThinkState state, std::size_t first_call);

}  // namespace minimind
