#include "runtime/answer_parser.h"

#include <algorithm>
#include <utility>

#include "runtime/tool_call.h"

namespace minimind {
namespace {

using Kind = AnswerEvent::Kind;

constexpr std::string_view think_begin = answer_tags[0], think_end = answer_tags[1];
constexpr std::string_view call_begin = answer_tags[2], call_end = answer_tags[3];
constexpr std::string_view white_space = " \t\r\n";

std::string_view without_end(std::string_view text, std::string_view characters) {
  return text.substr(0, text.find_last_not_of(characters) + 1);
}

std::string_view without_begin(std::string_view text, std::string_view characters) {
  return text.substr(std::min(text.find_first_not_of(characters), text.size()));
}

// How much of the text is certain not to belong to `tag`, nor to be the white space before it.
std::size_t certain_before(std::string_view text, std::string_view tag) {
  std::size_t partial = std::min(tag.size() - 1, text.size());
  while (!text.ends_with(tag.substr(0, partial))) --partial;
  return without_end(text.substr(0, text.size() - partial), white_space).size();
}

void add_call(std::vector<AnswerEvent>& events, std::string_view text) {
  if (const auto call = parse_tool_call(text)) {
    events.push_back({.kind = Kind::tool_call, .text = "", .call = *call});
  } else {
    events.push_back({.kind = Kind::not_a_call, .text = std::string(text), .call = {}});
  }
}

}  // namespace

ThinkState think_state(std::string_view prompt) {
  const std::string_view said = without_end(prompt, white_space);
  if (said.ends_with(think_begin)) return ThinkState::open;
  return said.ends_with(think_end) ? ThinkState::closed : ThinkState::none;
}

AnswerParser::AnswerParser(ThinkState state)
    : place_(state == ThinkState::open ? Place::thought : Place::start), behind_tag_(state != ThinkState::none) {}

void AnswerParser::push(std::string_view text, std::vector<AnswerEvent>& events) {
  held_ += text;
  while (leave(events)) continue;
}

void AnswerParser::finish(std::vector<AnswerEvent>& events) {
  const std::string rest = std::exchange(held_, "");
  if (place_ == Place::call) return add_call(events, rest);
  if (place_ == Place::thought) return show(Kind::thought, without_end(rest, "\n"), events);
  show(Kind::text, rest, events);
}

// Shows what is certain; goes on to the next place, and returns true, if the tag that begins it is there.
bool AnswerParser::leave(std::vector<AnswerEvent>& events) {
  switch (place_) {
    case Place::start:
      return leave_start();
    case Place::thought:
      return leave_to(Place::start, think_end, Kind::thought, "\n", events);
    case Place::text:
      return leave_to(Place::call, call_begin, Kind::text, white_space, events);
    case Place::call:
      return leave_call(events);
  }
  return false;
}

bool AnswerParser::leave_start() {
  const std::string_view rest = without_begin(held_, white_space);
  if (rest.size() < think_begin.size() && think_begin.starts_with(rest)) return false;
  if (rest.starts_with(think_begin)) {
    held_.erase(0, held_.size() - rest.size() + think_begin.size());
    place_ = Place::thought;
    behind_tag_ = true;
  } else {
    place_ = Place::text;
  }
  return true;
}

bool AnswerParser::leave_to(Place next, std::string_view tag, Kind kind, std::string_view cut_before_tag,
                            std::vector<AnswerEvent>& events) {
  const std::size_t at = held_.find(tag);
  const bool found = at != std::string::npos;
  const std::size_t certain = found ? at : certain_before(held_, tag);
  const std::string_view text = std::string_view(held_).substr(0, certain);
  show(kind, found ? without_end(text, cut_before_tag) : text, events);
  held_.erase(0, found ? at + tag.size() : certain);
  if (!found) return false;
  place_ = next;
  behind_tag_ = true;
  return true;
}

bool AnswerParser::leave_call(std::vector<AnswerEvent>& events) {
  const std::size_t end = held_.find(call_end);
  if (end == std::string::npos) return false;
  add_call(events, std::string_view(held_).substr(0, end));
  held_.erase(0, end + call_end.size());
  place_ = Place::text;
  behind_tag_ = true;
  return true;
}

void AnswerParser::show(Kind kind, std::string_view text, std::vector<AnswerEvent>& events) {
  if (behind_tag_) {
    if (without_end(text, white_space).empty()) return;
    text = without_begin(text, "\n");
  }
  if (text.empty()) return;
  bool& shown = kind == Kind::thought ? thought_shown_ : text_shown_;
  const std::string_view border = behind_tag_ && shown ? (kind == Kind::thought ? "\n\n" : "\n") : "";
  events.push_back({.kind = kind, .text = std::string(border).append(text), .call = {}});
  shown = true;
  behind_tag_ = false;
}

}  // namespace minimind
