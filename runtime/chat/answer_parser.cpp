#include "runtime/chat/answer_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/chat/chat_json.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// Returns the position after the string or other value that starts at `at` in valid JSON: the comma or bracket that
// ends it.
std::size_t end_of_value(std::string_view json, std::size_t at) {
  JsonDepth depth;
  for (; at < json.size(); ++at) {
    const char c = json[at];
    if (depth.brackets == 0 && depth.place == JsonPlace::between && (c == ',' || c == ':' || c == '}')) break;
    depth.take(c);
  }
  return at;
}

// Returns the content of a JSON string; std::nullopt if the text is another value.
std::optional<std::string> text_of(std::string_view json) {
  const ChatJson value = parse_chat_json(json, "a string", LargeIntegers::rounded);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

// Returns the keys of a valid JSON object, and the characters of their values.
std::vector<std::pair<std::string, std::string_view>> members_of(std::string_view json) {
  std::vector<std::pair<std::string, std::string_view>> members;
  std::size_t at = json.find('{') + 1;
  if (trimmed(json.substr(at)) == "}") return members;
  while (json[at - 1] != '}') {
    const std::size_t colon = end_of_value(json, at), end = end_of_value(json, colon + 1);
    members.emplace_back(text_of(trimmed(json.substr(at, colon - at))).value(),
                         trimmed(json.substr(colon + 1, end - colon - 1)));
    at = end + 1;
  }
  return members;
}

// The start of a JSON object, which may end anywhere.
class ObjectStart {
 public:
  explicit ObjectStart(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return trimmed(rest_).empty() ? std::string_view() : rest_; }

  bool take(char c) {
    skip_spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // std::nullopt if the string is incomplete, which stays the rest.
  std::optional<std::string> take_string() {
    skip_spaces();
    if (!rest_.starts_with('"')) return std::nullopt;
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return std::nullopt;
    auto text = text_of(rest_.substr(0, end + 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(ascii_spaces), rest_.size())); }

 private:
  std::string_view rest_;
};

// Reads the arguments after the name; false if there is something else. They stay empty if the text ends before them.
bool read_cut_arguments(ObjectStart& object, std::string_view& arguments) {
  if (!object.take(',')) return object.rest().empty();
  const auto key = object.take_string();
  if (!key) return object.rest().empty() || object.rest().starts_with('"');
  if (*key != "arguments" && *key != "parameters") return false;
  if (!object.take(':')) return object.rest().empty();
  object.skip_spaces();
  const std::string_view rest = object.rest();
  if (rest.empty()) return true;
  arguments = rest.substr(0, std::min(end_of_value(rest, 0), rest.size()));
  return rest.front() == '{';
}

// The start of a call, and its arguments so far, a part of `json`.
struct CutCall {
  std::string name;
  std::string_view arguments;
};
std::optional<CutCall> read_cut_call(std::string_view json) {
  try {
    ObjectStart object(json);
    if (!object.take('{') || object.take_string() != "name" || !object.take(':')) return std::nullopt;
    CutCall call{object.take_string().value_or(""), {}};
    if (call.name.empty() || !read_cut_arguments(object, call.arguments)) return std::nullopt;
    return call;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void JsonDepth::take(char c) {
  if (place == JsonPlace::between) {
    if (c == '{' || c == '[') {
      ++brackets;
    } else if ((c == '}' || c == ']') && brackets > 0) {
      --brackets;
    }
  }
  place = after(place, c);
}

std::optional<ToolCall> parse_tool_call(std::string_view json) {
  try {
    if (!parse_chat_json(json, "the call", LargeIntegers::rounded).is_object()) return std::nullopt;
    ToolCall call;
    for (const auto& [key, text] : members_of(json)) {
      if (key == "name" && call.name.empty()) {
        call.name = text_of(text).value_or("");
        if (call.name.empty()) return std::nullopt;
      } else if ((key == "arguments" || key == "parameters") && call.arguments.empty()) {
        call.arguments = text_of(text).value_or(std::string(text));
        if (!parse_chat_json(call.arguments, "the arguments", LargeIntegers::rounded).is_object()) return std::nullopt;
      } else {
        return std::nullopt;
      }
    }
    if (call.name.empty()) return std::nullopt;
    if (call.arguments.empty()) call.arguments = "{}";
    return call;
  } catch (const Error&) {
    return std::nullopt;  // models may write invalid JSON; the user sees it as text
  }
}

std::optional<ToolCall> parse_cut_tool_call(std::string_view json) {
  auto call = read_cut_call(json);
  if (!call) return std::nullopt;
  return ToolCall{.id = "", .name = std::move(call->name), .arguments = std::string(call->arguments)};
}

namespace {

using Kind = AnswerEvent::Kind;

constexpr std::string_view think_begin = answer_tags[0], think_end = answer_tags[1];
constexpr std::string_view call_begin = answer_tags[2], call_end = answer_tags[3];

// A call whose arguments start later is emitted whole: no text is looked at again and again.
constexpr std::size_t longest_call_start = 1024;

std::string_view without_end(std::string_view text, std::string_view characters) {
  return text.substr(0, text.find_last_not_of(characters) + 1);
}

std::string_view without_begin(std::string_view text, std::string_view characters) {
  return text.substr(std::min(text.find_first_not_of(characters), text.size()));
}

// Returns the length of the prefix that certainly belongs neither to `tag` nor to the whitespace before it.
std::size_t certain_before(std::string_view text, std::string_view tag) {
  std::size_t partial = std::min(tag.size() - 1, text.size());
  while (!text.ends_with(tag.substr(0, partial))) --partial;
  return without_end(text.substr(0, text.size() - partial), ascii_spaces).size();
}

}  // namespace

ThinkState think_state(std::string_view prompt) {
  const std::string_view said = without_end(prompt, ascii_spaces);
  if (said.ends_with(think_begin)) return ThinkState::open;
  return said.ends_with(think_end) ? ThinkState::closed : ThinkState::none;
}

AnswerParser::AnswerParser(ThinkState state, bool streams_calls)
    : place_(state == ThinkState::open ? Place::thought : Place::start), streams_calls_(streams_calls) {}

void AnswerParser::push(std::string_view text, Events& events) {
  held_.erase(0, std::exchange(taken_, 0));
  held_ += text;
  while (leave(events)) continue;
}

bool AnswerParser::take_cut_call(Events& events) {
  if (place_ != Place::call || parse_tool_call(held())) return false;
  const auto call = parse_cut_tool_call(held());
  if (!call) return false;
  taken_ = held_.size();
  place_ = Place::text;
  behind_call_ = true;
  show_call(*call, events);
  return true;
}

void AnswerParser::finish(Events& events) {
  while (place_ == Place::call) {
    take_call(held().size(), events);
    while (leave(events)) continue;
  }
  const std::string_view rest = held();
  taken_ = held_.size();
  if (place_ == Place::thought) return show_thought(without_end(rest, "\n"), events);
  if (behind_call_ && without_end(rest, ascii_spaces).empty()) return;
  show_text(Kind::text, rest, events);
}

// Emits the certain text; continues to the next position and returns true if the tag that starts it is complete.
bool AnswerParser::leave(Events& events) {
  switch (place_) {
    case Place::start:
      return leave_start();
    case Place::thought:
      return leave_thought(events);
    case Place::text:
      return leave_text(events);
    case Place::call:
      return leave_call(events);
  }
  return false;
}

bool AnswerParser::leave_start() {
  const std::string_view rest = without_begin(held(), ascii_spaces);
  if (rest.size() < think_begin.size() && think_begin.starts_with(rest)) return false;
  if (rest.starts_with(think_begin)) {
    taken_ = held_.size() - rest.size() + think_begin.size();
    place_ = Place::thought;
  } else {
    place_ = Place::text;
  }
  return true;
}

bool AnswerParser::leave_thought(Events& events) {
  const std::size_t at = held().find(think_end);
  const bool found = at != std::string::npos;
  const std::size_t certain = found ? at : certain_before(held(), think_end);
  const std::string_view text = held().substr(0, certain);
  show_thought(found ? without_end(text, "\n") : text, events);
  taken_ += found ? at + think_end.size() : certain;
  if (!found) return false;
  place_ = Place::start;
  thought_begun_ = false;
  unshown_ = "\n";
  return true;
}

bool AnswerParser::leave_text(Events& events) {
  const std::size_t at = held().find(call_begin);
  const bool found = at != std::string::npos;
  const std::size_t certain =
      found ? without_end(held().substr(0, at), ascii_spaces).size() : certain_before(held(), call_begin);
  show_text(Kind::text, held().substr(0, certain), events);
  if (found) space_ += held().substr(certain, at - certain);
  taken_ += found ? at + call_begin.size() : certain;
  if (!found) return false;
  place_ = Place::call;
  searched_ = broken_from_ = 0;
  json_place_ = JsonPlace::between;
  broken_ = false;
  return true;
}

bool AnswerParser::leave_call(Events& events) {
  const std::size_t end = find_call_end();
  if (end == std::string::npos) {
    if (streams_calls_ && !broken_) show_arguments(events);
    return false;
  }
  take_call(end, events);
  return true;
}

// Emits what there is of the arguments, without the bracket that closes them.
void AnswerParser::show_arguments(Events& events) {
  if (!begun_) {
    const auto call = held().size() <= longest_call_start ? read_cut_call(held()) : std::nullopt;
    if (!call || call->arguments.empty()) return;
    begun_ = ToolCall{.id = "", .name = call->name, .arguments = ""};
    shown_ = static_cast<std::size_t>(call->arguments.data() - held().data());
    depth_ = {};
    events.push_back({.kind = Kind::tool_call, .text = "", .call = *begun_});
  }
  const std::size_t begin = shown_;
  bool open = begun_->arguments.empty() || depth_.brackets > 0;
  while (open && shown_ < searched_) {
    depth_.take(held()[shown_]);
    open = depth_.brackets > 0;
    if (open) ++shown_;
  }
  if (begin == shown_) return;
  const std::string_view text = held().substr(begin, shown_ - begin);
  begun_->arguments += text;
  events.push_back({.kind = Kind::arguments, .text = std::string(text), .call = {}});
}

// Emits a call, or what is left of one that was begun.
void AnswerParser::show_call(ToolCall call, Events& events) {
  if (!begun_) return events.push_back({.kind = Kind::tool_call, .text = "", .call = std::move(call)});
  const std::size_t shown = std::min(begun_->arguments.size(), call.arguments.size());
  if (shown < call.arguments.size())
    events.push_back({.kind = Kind::arguments, .text = call.arguments.substr(shown), .call = {}});
  begun_.reset();
}

// Finds </tool_call> outside of strings, or anywhere if the strings are not JSON strings: of two calls of which the
// first seems to have no end, one is in a string where the other is not, so that a `<` or a backslash breaks the
// second.
std::size_t AnswerParser::find_call_end() {
  const std::string_view text = held();
  for (; searched_ < text.size() && !broken_; ++searched_) {
    const char c = text[searched_];
    if (json_place_ != JsonPlace::between) {
      broken_ = static_cast<unsigned char>(c) < 0x20;
    } else if (c == call_end.front()) {
      const std::string_view rest = text.substr(searched_, call_end.size());
      if (rest == call_end) return searched_;
      if (call_end.starts_with(rest)) break;
      broken_ = true;
    } else if (c == '\\') {
      broken_ = true;
    }
    json_place_ = after(json_place_, c);
  }
  if (!broken_) return std::string_view::npos;
  const std::size_t at = text.find(call_end, broken_from_);
  broken_from_ = std::max(text.size() + 1, call_end.size()) - call_end.size();
  return at;
}

// Takes the text before `end`, where the call ends if it is a call.
void AnswerParser::take_call(std::size_t end, Events& events) {
  const std::string_view text = held();
  const auto call = parse_tool_call(text.substr(0, end));
  if (!call) end = std::min(text.find(call_end), text.size());
  const std::string_view body = text.substr(0, end + call_end.size());
  taken_ += body.size();
  place_ = Place::text;
  if (!call) {
    const Kind kind = begun_ ? Kind::broken_call : Kind::not_a_call;
    begun_.reset();
    return show_text(kind, std::string(call_begin).append(body), events);
  }
  show_call(*call, events);
  behind_call_ = true;
  unshown_ = ascii_spaces;
}

void AnswerParser::show_thought(std::string_view text, Events& events) {
  if (!thought_begun_) {
    if (without_end(text, ascii_spaces).empty()) return;
    text = without_begin(text, "\n");
  }
  if (text.empty()) return;
  const std::string_view border = thought_shown_ && !thought_begun_ ? "\n\n" : "";
  events.push_back({.kind = Kind::thought, .text = std::string(border).append(text), .call = {}});
  thought_begun_ = thought_shown_ = true;
}

void AnswerParser::show_text(Kind kind, std::string_view text, Events& events) {
  if (text.empty()) return;
  std::string shown = std::exchange(space_, "").append(text);
  if (!text_shown_) shown.erase(0, std::min(shown.find_first_not_of(unshown_), shown.size()));
  behind_call_ = false;
  if (shown.empty()) return;
  events.push_back({.kind = kind, .text = std::move(shown), .call = {}});
  text_shown_ = true;
}

void add_event(AnswerEvent& event, Message& message, std::size_t& next_call) {
  switch (event.kind) {
    case AnswerEvent::Kind::thought:
      if (!message.reasoning) message.reasoning.emplace();
      *message.reasoning += event.text;
      break;
    case AnswerEvent::Kind::text:
    case AnswerEvent::Kind::not_a_call:
      message.content += event.text;
      break;
    case AnswerEvent::Kind::broken_call:
      message.tool_calls.pop_back();
      --next_call;
      message.content += event.text;
      break;
    case AnswerEvent::Kind::tool_call:
      event.call.id = fmt::format("call_{}", next_call++);
      message.tool_calls.push_back(event.call);
      break;
    case AnswerEvent::Kind::arguments:
      message.tool_calls.back().arguments += event.text;
      break;
  }
}

}  // namespace minimind
