#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/message.h"

namespace minimind {

inline constexpr std::array<std::string_view, 4> answer_tags = {"<think>", "</think>", "<tool_call>", "</tool_call>"};

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
// Text that may be the beginning of a tag is held back until that is certain, and so is white space, until it is known
// what follows it: how the stream was cut changes nothing but the pieces' borders. Joined,
//   - thoughts are without the line feeds around them, and those of white space alone give no event; several are an
//     empty line apart;
//   - the answer is exact but for white space between it and tags; what stands behind a call begins a new line.
// A thought begins the answer or follows another one: <think> behind text of the answer is text. So is a </think>
// outside of a thought, and calls inside of one are thoughts. What is not closed ends with the answer.
class AnswerParser {
 public:
  explicit AnswerParser(ThinkState state);

  // Appends what is certain now to `events`.
  void push(std::string_view text, std::vector<AnswerEvent>& events);

  // The answer is over.
  void finish(std::vector<AnswerEvent>& events);

 private:
  enum class Place { start, thought, text, call };

  bool leave(std::vector<AnswerEvent>& events);
  bool leave_start();
  bool leave_to(Place next, std::string_view tag, AnswerEvent::Kind kind, std::string_view cut_before_tag,
                std::vector<AnswerEvent>& events);
  bool leave_call(std::vector<AnswerEvent>& events);
  void show(AnswerEvent::Kind kind, std::string_view text, std::vector<AnswerEvent>& events);

  Place place_;
  std::string held_;
  bool behind_tag_;  // nothing but white space came since one
  bool thought_shown_ = false;
  bool text_shown_ = false;
};

}  // namespace minimind
