#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"

namespace minimind {

// The output of OpenAI's Responses API as it grows: items for a thought, the text and each call, with the events that a
// stream has of them. What ends is JSON already: other texts wait meanwhile, and log-probabilities are many.
class ResponseItems {
 public:
  // `emit` gets each event: its type, and its other members as JSON without braces, but for the sequence number.
  using Emit = std::function<void(std::string_view type, const std::string& members)>;
  explicit ResponseItems(Emit emit) : emit_(std::move(emit)) {}

  // Adds a piece of the answer. `logprobs` are those of its tokens, a list.
  void add(const AnswerEvent& event, const ChatJson& logprobs);

  // Adds those of tokens that are in no piece, if the item that grows is a text or there is none: others have none.
  void add_logprobs(const ChatJson& logprobs);

  // Whether the item that grows is a call.
  bool is_call() const;

  // Ends the last item, and makes one of an answer without any. `is_cut`: the answer is incomplete; `has_cut_call`: its
  // last call is.
  void finish(bool is_cut, bool has_cut_call);

  // An item as JSON.
  struct Item {
    std::string id, json;
  };
  // Those that have ended: all, after finish().
  const std::vector<Item>& items() const { return items_; }

 private:
  void open(std::string_view type, ChatJson item);
  void open_text(std::string_view type);
  void close(std::string_view status);
  void open_call(const ToolCall& call);
  void add_arguments(std::string_view text);
  std::string part() const;
  std::string item(std::string_view part) const;
  void emit_item(std::string_view type, const std::string& item) const;
  void emit(std::string_view type, std::string_view members, bool of_part = true) const;

  const Emit emit_;
  std::vector<Item> items_;
  std::string open_;  // the type of the item that grows, the last one; empty: none
  ChatJson item_;     // that grows, without its content
  std::string text_, logprobs_;
};

// Returns a parameter of a query as it was sent: ids, numbers and flags have nothing to decode.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// Returns the page of a response's input that a query asks for by `after`, `limit` and `order`. Items that came without
// an id have one that is made of the response's. Throws RequestError.
ChatJson item_list(ChatJson items, const std::string& response_id, std::string_view query);

}  // namespace minimind
