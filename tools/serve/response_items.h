#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"

namespace minimind {

// The output of OpenAI's Responses API as it grows: items for a thought, the text and each call, with the events that a
// stream has of them.
class ResponseItems {
 public:
  // `emit` gets each event, without its sequence number.
  using Emit = std::function<void(ChatJson event)>;
  explicit ResponseItems(Emit emit) : emit_(std::move(emit)) {}

  // Adds a piece of the answer. `logprobs` are those of its tokens, a list.
  void add(const AnswerEvent& event, ChatJson logprobs);

  // Ends the last item, and makes one of an answer without any. `is_cut`: the answer is incomplete; `has_cut_call`: its
  // last call is.
  void finish(bool is_cut, bool has_cut_call);

  // The items, after finish().
  const ChatJson& items() const { return items_; }

 private:
  void open(std::string_view type, ChatJson item);
  void open_text(std::string_view type);
  void close(std::string_view status);
  void open_call(const ToolCall& call);
  void add_arguments(std::string_view text);
  ChatJson part() const;
  ChatJson event(std::string_view type, const ChatJson& fields, bool of_part = true) const;

  const Emit emit_;
  ChatJson items_ = ChatJson::array();
  std::string open_;  // the type of the item that grows, the last one; empty: none
  std::string text_;
  ChatJson logprobs_ = ChatJson::array();
};

// Returns a parameter of a query as it was sent: ids, numbers and flags have nothing to decode.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// Returns the page of a response's input that a query asks for by `after`, `limit` and `order`. Items that came without
// an id have one that is made of the response's. Throws RequestError.
ChatJson item_list(ChatJson items, const std::string& response_id, std::string_view query);

}  // namespace minimind
