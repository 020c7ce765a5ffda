#include "tools/serve/response_items.h"

#include <utility>

#include "tools/openai/answer_body.h"

namespace minimind {
namespace {

constexpr std::string_view message_type = "message", thought_type = "reasoning", call_type = "function_call";

}  // namespace

ChatJson ResponseItems::part() const {
  if (open_ == thought_type) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"}, {"text", text_}, {"annotations", ChatJson::array()}, {"logprobs", logprobs_}};
}

// An event about the last item, or about its only part.
ChatJson ResponseItems::event(std::string_view type, const ChatJson& fields, bool of_part) const {
  ChatJson event{{"type", type}, {"output_index", items_.size() - 1}};
  if (of_part) event["content_index"] = 0;
  event["item_id"] = items_.back()["id"];
  event.update(fields);
  return event;
}

void ResponseItems::open(std::string_view type) {
  if (open_ == type) return;
  close("completed");
  open_ = type;
  text_.clear();
  logprobs_ = ChatJson::array();
  ChatJson item{{"type", type}, {"id", unique_id(type == thought_type ? "rs_" : "msg_")}, {"status", "in_progress"}};
  if (type == thought_type) {
    item["summary"] = ChatJson::array();
  } else {
    item["role"] = "assistant";
  }
  item["content"] = ChatJson::array();
  items_.push_back(item);
  emit_({{"type", "response.output_item.added"}, {"output_index", items_.size() - 1}, {"item", std::move(item)}});
  emit_(event("response.content_part.added", {{"part", part()}}));
}

void ResponseItems::close(std::string_view status) {
  if (open_.empty()) return;
  const bool is_thought = open_ == thought_type;
  ChatJson done{{"text", text_}};
  if (!is_thought) done["logprobs"] = logprobs_;
  emit_(event(is_thought ? "response.reasoning_text.done" : "response.output_text.done", done));
  emit_(event("response.content_part.done", {{"part", part()}}));
  ChatJson& item = items_.back();
  item["content"].push_back(part());
  item["status"] = status;
  emit_({{"type", "response.output_item.done"}, {"output_index", items_.size() - 1}, {"item", item}});
  open_.clear();
}

void ResponseItems::add(const AnswerEvent& piece, ChatJson logprobs) {
  if (piece.kind == AnswerEvent::Kind::tool_call) return add_call(piece.call);
  const bool is_thought = piece.kind == AnswerEvent::Kind::thought;
  open(is_thought ? thought_type : message_type);
  text_ += piece.text;
  ChatJson delta{{"delta", piece.text}};
  if (!is_thought) {
    for (const ChatJson& token : logprobs) logprobs_.push_back(token);
    delta["logprobs"] = std::move(logprobs);
  }
  emit_(event(is_thought ? "response.reasoning_text.delta" : "response.output_text.delta", delta));
}

// The model's call comes as a whole.
void ResponseItems::add_call(const ToolCall& call) {
  close("completed");
  items_.push_back({{"type", call_type},
                    {"id", unique_id("fc_")},
                    {"call_id", unique_id("call_")},
                    {"name", call.name},
                    {"arguments", ""},
                    {"status", "in_progress"}});
  ChatJson& item = items_.back();
  emit_({{"type", "response.output_item.added"}, {"output_index", items_.size() - 1}, {"item", item}});
  emit_(event("response.function_call_arguments.delta", {{"delta", call.arguments}}, false));
  item["arguments"] = call.arguments;
  item["status"] = "completed";
  emit_(event("response.function_call_arguments.done", {{"name", call.name}, {"arguments", call.arguments}}, false));
  emit_({{"type", "response.output_item.done"}, {"output_index", items_.size() - 1}, {"item", item}});
}

void ResponseItems::finish(bool is_cut) {
  if (items_.empty()) open(message_type);
  close(is_cut ? "incomplete" : "completed");
}

ChatJson ResponseItems::message(bool is_cut_call) const {
  ChatJson message{{"role", "assistant"}, {"content", ""}};
  ChatJson calls = ChatJson::array();
  for (const ChatJson& item : items_) {
    if (item["type"] == call_type) {
      calls.push_back({{"id", item["call_id"]},
                       {"type", "function"},
                       {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
      continue;
    }
    std::string text = item["content"][0]["text"];
    ChatJson& field = message[item["type"] == thought_type ? "reasoning_content" : "content"];
    field = field.is_null() ? text : field.get<std::string>() + text;
  }
  if (is_cut_call && !calls.empty()) calls.erase(calls.size() - 1);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace minimind
