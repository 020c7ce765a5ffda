#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/message.h"

namespace minimind {

// Where an answer begins.
enum class ThinkState {
  none,    // the prompt says nothing of thoughts
  open,    // it ends inside a thought, which the answer goes on with
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
    not_a_call  // text: what stood between <tool_call> and its end, but is no {"name": ..., "arguments": {...}}
  };
  Kind kind = Kind::text;
  std::string text;
  ToolCall call;  // its id is empty

  bool operator==(const AnswerEvent&) const = default;
};

// Splits the stream of an answer's text at <think>, </think>, <tool_call> and </tool_call>, which appear in no event.
// Text that may be the beginning of a tag is held back until that is certain, and white space until it is known what
// follows it: how the stream was cut changes nothing but the pieces' borders. Joined,
//   - thoughts are without the line feeds around them, and those of white space alone give no event;
//   - the answer is exact but for white space between it and tags.
// A thought begins the answer or follows another one: <think> behind text of the answer is text. A </think> outside of
// a thought is text too, and so are calls inside of one. What is not closed ends with the answer.
class AnswerParser {
 public:
  explicit AnswerParser(ThinkState state);

  // Appends what is certain now to `events`.
  void push(std::string_view text, std::vector<AnswerEvent>& events);

  // The answer is over.
  void finish(std::vector<AnswerEvent>& events);

 private:
  enum class Place { start, thought, text, call };

  bool step(std::vector<AnswerEvent>& events);
  bool step_start(std::vector<AnswerEvent>& events);
  bool step_thought(std::vector<AnswerEvent>& events);
  bool step_text(std::vector<AnswerEvent>& events);
  bool step_call(std::vector<AnswerEvent>& events);

  Place place_;
  std::string held_;
  bool shown_ = false;      // something of the present thought or text
  bool after_tag_ = false;  // nothing but white space came since one
};

}  // namespace minimind
