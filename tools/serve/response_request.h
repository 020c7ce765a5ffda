#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/chat/chat_json.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"

namespace minimind {

// A response that is kept, as JSON: itself, and the items of its input with all before them.
struct StoredResponse {
  std::string response, input;
  std::map<std::string, std::string> output{};  // its items by their ids

  std::size_t bytes() const {
    std::size_t bytes = response.size() + input.size();
    for (const auto& [id, item] : output) bytes += 2 * id.size() + item.size();  // the store has each id, too
    return bytes;
  }
};

// The responses that an id stands for, in memory: the latest ones within the limits. Any thread.
class ResponseStore {
 public:
  static constexpr std::size_t most_responses = 1000, most_bytes = std::size_t{32} << 20;

  // One that takes over half of the memory is not kept, as no other one would be.
  void add(const std::string& id, StoredResponse response);

  // Returns the response. Throws RequestError about the field if it is not there, or not any more.
  std::shared_ptr<const StoredResponse> find(const std::string& id, const std::string& field) const;

  // Returns an item of the output of one of them, as JSON; std::nullopt if none has it.
  std::optional<std::string> find_item(const std::string& id) const;

  // Drops it; throws as find() does.
  void remove(const std::string& id);

 private:
  using Responses = std::map<std::string, std::shared_ptr<const StoredResponse>>;
  Responses::const_iterator place_of(const std::string& id, const std::string& field) const;
  void drop(const std::string& id);

  mutable std::mutex mutex_;                   // guards all below
  Responses responses_;                        // by ids
  std::deque<std::string> ids_;                // the oldest first
  std::map<std::string, std::string> owners_;  // ids of responses by those of the items of their output
  std::size_t bytes_ = 0;
};

// The body of a request for a response.
struct ResponseRequest {
  Request text;
  std::string input;     // a list of the items of the conversation with those of this request, without its instructions
  std::string settings;  // the fields of the response that repeat the request's, as JSON without braces
  bool stream = false;
  bool stores = true;
};

// Reads the body of OpenAI's Responses API: it becomes that of a chat completion, which read_request() reads. It has
// model, input, instructions, previous_response_id, store, stream, max_output_tokens, text, reasoning, tools,
// tool_choice, include, top_logprobs and what a chat completion has by the same name. Throws RequestError for anything
// else, naming the field, and if the conversation has over `most_text` bytes.
ResponseRequest read_response_request(const ChatJson& body, const RequestDefaults& defaults, const ResponseStore& store,
                                      std::size_t most_text);

// Returns an error about a field of a chat completion as one about that of the response.
RequestError response_error(const RequestError& error);

}  // namespace minimind
