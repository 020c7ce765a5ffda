#include "tools/serve/response_items.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/openai/answer_body.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::string_view message_type = "message", thought_type = "reasoning", call_type = "function_call";

// Returns an item as clients may send it with all that it has in a list.
ChatJson whole_item(const ChatJson& item, const std::string& id) {
  const std::string given = text_or_empty(item, "type");
  ChatJson whole{{"type", given.empty() ? message_type : given}, {"id", id}, {"status", "completed"}};
  if (given == thought_type) whole["summary"] = ChatJson::array();
  for (const auto& [name, value] : item.items()) {
    if (!value.is_null()) whole[name] = value;
  }
  if (whole["type"] != message_type || !whole["content"].is_string()) return whole;
  const bool is_answer = whole["role"] == "assistant";
  ChatJson part{{"type", is_answer ? "output_text" : "input_text"}, {"text", whole["content"]}};
  if (is_answer) part["annotations"] = ChatJson::array();
  whole["content"] = ChatJson::array({std::move(part)});
  return whole;
}

}  // namespace

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), field.size() + 1));
    if (field.starts_with(name) && field.substr(name.size()).starts_with('=')) {
      return std::string(field.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::string ResponseItems::part() const {
  const std::string text = json_line(ChatJson(text_));
  if (open_ == thought_type) return fmt::format(R"({{"type": "reasoning_text", "text": {}}})", text);
  return fmt::format(R"({{"type": "output_text", "text": {}, "annotations": [], "logprobs": [{}]}})", text, logprobs_);
}

// The item that grows, with a part.
std::string ResponseItems::item(std::string_view part) const {
  std::string json = json_line(item_);
  if (open_ == call_type) return json;
  json.back() = ',';
  return fmt::format(R"({} "content": [{}]}})", json, part);
}

void ResponseItems::emit_item(std::string_view type, const std::string& item) const {
  emit_(type, fmt::format(R"("output_index": {}, "item": {})", items_.size(), item));
}

// An event about the item that grows, or about its only part.
void ResponseItems::emit(std::string_view type, std::string_view members, bool of_part) const {
  emit_(type, fmt::format(R"("output_index": {}{}, "item_id": {}, {})", items_.size(),
                          of_part ? R"(, "content_index": 0)" : "", json_line(item_["id"]), members));
}

void ResponseItems::open(std::string_view type, ChatJson item) {
  close("completed");
  open_ = type;
  text_.clear();
  logprobs_.clear();
  item_ = std::move(item);
  emit_item("response.output_item.added", this->item(""));
}

void ResponseItems::open_text(std::string_view type) {
  if (open_ == type) return;
  ChatJson item{{"type", type}, {"id", unique_id(type == thought_type ? "rs_" : "msg_")}, {"status", "in_progress"}};
  if (type == thought_type) {
    item["summary"] = ChatJson::array();
  } else {
    item["role"] = "assistant";
  }
  open(type, std::move(item));
  emit("response.content_part.added", R"("part": )" + part());
}

void ResponseItems::close(std::string_view status) {
  if (open_.empty()) return;
  const std::string text = json_line(ChatJson(text_));
  std::string part;
  if (open_ == call_type) {
    emit("response.function_call_arguments.done",
         fmt::format(R"("name": {}, "arguments": {})", json_line(item_["name"]), text), false);
    item_["arguments"] = text_;
  } else {
    part = this->part();
    if (open_ == thought_type) {
      emit("response.reasoning_text.done", R"("text": )" + text);
    } else {
      emit("response.output_text.done", fmt::format(R"("text": {}, "logprobs": [{}])", text, logprobs_));
    }
    emit("response.content_part.done", R"("part": )" + part);
  }
  item_["status"] = status;
  std::string json = item(part);
  emit_item("response.output_item.done", json);
  items_.push_back({item_["id"], std::move(json)});
  open_.clear();
}

void ResponseItems::add(const AnswerEvent& piece, const ChatJson& logprobs) {
  if (piece.kind == AnswerEvent::Kind::tool_call) return open_call(piece.call);
  if (piece.kind == AnswerEvent::Kind::arguments) return add_arguments(piece.text);
  if (piece.kind == AnswerEvent::Kind::broken_call) close("incomplete");
  const bool is_thought = piece.kind == AnswerEvent::Kind::thought;
  open_text(is_thought ? thought_type : message_type);
  text_ += piece.text;
  const std::string delta = R"("delta": )" + json_line(ChatJson(piece.text));
  if (is_thought) return emit("response.reasoning_text.delta", delta);
  const std::string list = json_line(logprobs);
  if (list != "[]") logprobs_.append(logprobs_.empty() ? "" : ", ").append(list, 1, list.size() - 2);
  emit("response.output_text.delta", fmt::format(R"({}, "logprobs": {})", delta, list));
}

void ResponseItems::open_call(const ToolCall& call) {
  open(call_type, {{"type", call_type},
                   {"id", unique_id("fc_")},
                   {"call_id", unique_id("call_")},
                   {"name", call.name},
                   {"arguments", ""},
                   {"status", "in_progress"}});
  if (!call.arguments.empty()) add_arguments(call.arguments);
}

void ResponseItems::add_arguments(std::string_view text) {
  text_ += text;
  emit("response.function_call_arguments.delta", R"("delta": )" + json_line(ChatJson(text)), false);
}

void ResponseItems::add_logprobs(const ChatJson& logprobs) {
  if (open_.empty() || open_ == message_type) add({}, logprobs);
}

bool ResponseItems::is_call() const {
  return open_ == call_type;
}

void ResponseItems::finish(bool is_cut, bool has_cut_call) {
  if (items_.empty() && open_.empty()) open_text(message_type);
  close((is_call() ? has_cut_call : is_cut) ? "incomplete" : "completed");
}

ChatJson item_list(ChatJson items, const std::string& response_id, std::string_view query) {
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = whole_item(items[i], fmt::format("{}_{}", response_id, i));
  const std::string order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") {
    throw RequestError(fmt::format("order is {}, expected asc or desc", quote(order)), "order");
  }
  if (order == "desc") std::reverse(items.begin(), items.end());
  const std::string limit = query_value(query, "limit").value_or("20");
  const auto most = number_in<std::size_t>(limit);
  if (!most || *most < 1 || *most > 100) {
    throw RequestError(fmt::format("limit is {}, expected a whole number from 1 to 100", quote(limit)), "limit");
  }
  auto first = items.begin();
  if (const auto after = query_value(query, "after")) {
    first = std::find_if(first, items.end(), [&](const ChatJson& item) { return item["id"] == *after; });
    if (first == items.end()) {
      throw RequestError(fmt::format("after is {}, expected the id of an item of the list", quote(*after)), "after");
    }
    ++first;
  }
  const auto last = first + static_cast<std::ptrdiff_t>(std::min<std::size_t>(*most, items.end() - first));
  const ChatJson page(std::vector<ChatJson>(first, last));
  return {{"object", "list"},
          {"data", page},
          {"first_id", page.empty() ? ChatJson(nullptr) : page.front()["id"]},
          {"last_id", page.empty() ? ChatJson(nullptr) : page.back()["id"]},
          {"has_more", last != items.end()}};
}

}  // namespace minimind
