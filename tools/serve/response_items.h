#pragma once

#include <functional>
#include <nlohmann/json.hpp>
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

  // Ends the last item, and makes one of an answer without any. `is_cut`: the answer is incomplete.
  void finish(bool is_cut);

  // The items, after finish().
  const ChatJson& items() const { return items_; }

  // The answer as a message of a chat completion. `is_cut_call`: without the last call, which is incomplete.
  ChatJson message(bool is_cut_call) const;

 private:
  void open(std::string_view type);
  void close(std::string_view status);
  void add_call(const ToolCall& call);
  ChatJson part() const;
  ChatJson event(std::string_view type, const ChatJson& fields, bool of_part = true) const;

  const Emit emit_;
  ChatJson items_ = ChatJson::array();
  std::string open_;  // the type of the item that grows, the last one; empty: none
  std::string text_;
  ChatJson logprobs_ = ChatJson::array();
};

}  // namespace minimind
