#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/message.h"
#include "weights/io/json_place.h"

namespace minimind {

inline constexpr std::array<std::string_view, 4> answer_tags = {"<think>", "</think>", "<tool_call>", "</tool_call>"};

// The state of thinking at the start of an answer.
enum class ThinkState {
  none,    // the prompt has no thinking
  open,    // the prompt ends inside a thought, which the answer continues
  closed,  // the prompt ends with a closed thought, usually an empty one
};

// Returns the state of thinking at the end of a prompt that a chat template wrote.
ThinkState think_state(std::string_view prompt);

// A piece of an answer.
struct AnswerEvent {
  enum class Kind {
    thought,     // text: the next piece of a thought
    text,        // text: the next piece of the answer itself
    tool_call,   // call: a complete call, or its name and the first of its arguments
    arguments,   // text: more of the arguments of the last call
    not_a_call,  // text: the next piece of the answer itself, with a <tool_call> that does not start a call
    broken_call  // the same, of the last call, some of which was emitted: it is none
  };
  Kind kind = Kind::text;
  std::string text;
  ToolCall call;  // its id is empty

  bool operator==(const AnswerEvent&) const = default;
};

// Adds the event to a message of the assistant. A call gets the id "call_N", N being `next_call`, which grows.
void add_event(AnswerEvent& event, Message& message, std::size_t& next_call);

// Parses a model's call: {"name": "...", "arguments": {...}}. The arguments may be named "parameters", may be the text
// of a JSON object, and may be omitted if empty. The characters of the arguments are kept: numbers, escapes, repeated
// keys and spaces. std::nullopt if a call cannot represent all of the text: another value, another key, a repeated key,
// or both arguments and parameters. Integers of more than 64 bits and numbers beyond a double give std::nullopt too,
// because no chat template can use them.
std::optional<ToolCall> parse_tool_call(std::string_view json);

// Parses the start of a call that starts with the name: the arguments are their characters so far, which may be none.
// std::nullopt if the name is incomplete, or if the text starts no such call.
std::optional<ToolCall> parse_cut_tool_call(std::string_view json);

// A position in the characters of a JSON value.
struct JsonDepth {
  std::size_t brackets = 0;  // that are open
  JsonPlace place = JsonPlace::between;

  void take(char c);
};

// Splits the stream of an answer's text at <think>, </think>, <tool_call> and </tool_call>. Text that may be the prefix
// of a tag is kept back until the next characters decide. So is whitespace. How the stream is cut changes only the
// borders of pieces.
//   - Thoughts, joined, are without their tags and the line feeds around them. Thoughts of whitespace alone give no
//     event; several are separated by an empty line. A thought starts the answer or follows another thought: <think>
//     after text of the answer is text. A </think> outside of a thought is text, and calls inside a thought are
//     thinking.
//   - Text, not_a_call and broken_call, joined, are the model's text, byte for byte, without thinking and complete
//   calls.
//   - Whitespace before a thought, line feeds after it, and whitespace between calls and the start or the end of the
//     answer are separators and are dropped. Line feeds at the start of an answer stay, also if the prompt has closed a
//     thought before them.
//   - A call, see parse_tool_call(), ends at </tool_call>, unless that is inside a JSON string, or with the answer.
//     If the text before that end is not a call, strings are ignored: it ends at the first </tool_call>, and the answer
//     continues after it.
// No event has a tag that the model did not write: an element that is open at the end of the answer stays open.
class AnswerParser {
 public:
  // `streams_calls`: the arguments of a call that starts with its name are emitted as they come, their last bracket
  // when the call has ended. What starts like a call may still be none: only those of calls are complete.
  explicit AnswerParser(ThinkState state, bool streams_calls = false);

  // Appends the text that is certain by now to `events`.
  void push(std::string_view text, std::vector<AnswerEvent>& events);

  // If the answer is in the middle of a call whose name is complete, adds the call with the characters of its arguments
  // so far, and returns true: a call that a limit cut off. Without it, finish() makes the call text. Only finish() may
  // follow.
  bool take_cut_call(std::vector<AnswerEvent>& events);

  // Ends the answer.
  void finish(std::vector<AnswerEvent>& events);

 private:
  using Events = std::vector<AnswerEvent>;
  enum class Place { start, thought, text, call };

  bool leave(Events& events);
  bool leave_start();
  bool leave_thought(Events& events);
  bool leave_text(Events& events);
  bool leave_call(Events& events);
  void show_arguments(Events& events);
  void show_call(ToolCall call, Events& events);
  std::string_view held() const { return std::string_view(held_).substr(taken_); }
  std::size_t find_call_end();
  void take_call(std::size_t end, Events& events);
  void show_thought(std::string_view text, Events& events);
  void show_text(AnswerEvent::Kind kind, std::string_view text, Events& events);

  Place place_;
  std::string held_;
  std::size_t taken_ = 0;       // the bytes at the start of held_ that were emitted
  bool thought_begun_ = false;  // some of the current thought was emitted
  bool thought_shown_ = false;
  bool text_shown_ = false;
  bool behind_call_ = false;  // only whitespace followed the last call
  std::string space_;         // before a call, part of the text if it continues after the call
  std::string_view unshown_;  // characters dropped at the start of text: separators from the previous part
  bool streams_calls_;
  std::optional<ToolCall> begun_;  // the current call, if some of it was emitted
  std::size_t shown_ = 0;          // the bytes of held() up to the end of its arguments so far
  JsonDepth depth_;                // there
  // How far the current call was searched for its end, and the result.
  std::size_t searched_ = 0;
  std::size_t broken_from_ = 0;  // the same if it is broken
  JsonPlace json_place_ = JsonPlace::between;
  bool broken_ = false;  // there is a character that JSON excludes there: the strings are none
};

}  // namespace minimind
