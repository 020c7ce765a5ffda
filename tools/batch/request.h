#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/message.h"
#include "runtime/generate/sampling_options.h"
#include "runtime/grammar/grammar.h"
#include "weights/io/error.h"

namespace minimind {

// What is wrong with one request. The other requests go on.
class RequestError : public Error {
 public:
  // `param` is the field of the body, empty if it is not one field. `code` is as OpenAI's API has it.
  RequestError(const std::string& message, std::string param, std::string code = "invalid_value")
      : Error(message), param_(std::move(param)), code_(std::move(code)) {}

  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  std::string param_, code_;
};

// Names a request in its result.
struct LineId {
  std::size_t number;     // of its line in the input
  std::string custom_id;  // the request's, or "line-N"

  bool operator==(const LineId&) const = default;
};

// What a request leaves open.
struct RequestDefaults {
  SamplingOptions sampling;
  std::shared_ptr<const Grammar> grammar;  // null: none
  std::size_t max_tokens = 512;
  std::vector<std::string> model_names;  // that a request may ask for
};

// One text to generate.
struct Request {
  bool chat = false;
  std::vector<Message> messages{};     // of a chat
  std::string tools{};                 // of a chat, as parse_tools() returns them; empty for none
  std::optional<bool> think{};         // of a chat
  std::string prompt{};                // of a completion, unless tokens are given
  std::vector<std::int32_t> tokens{};  // of a completion
  SamplingOptions sampling{};
  bool has_seed = false;
  std::size_t max_tokens = 0;
  std::vector<std::string> stop{};
  std::shared_ptr<const Grammar> grammar{};  // null: none
  std::optional<std::string> custom_id{};    // of its line
};

// The custom_id of a line of a batch, if it is a JSON object that has one.
std::optional<std::string> custom_id_of(std::string_view line);

// Reads a line of a batch: OpenAI's {"custom_id", "method", "url", "body"}, or a body alone, {"messages": [...]} or
// {"prompt": "text" or [ids]}, with or without custom_id. A body may have what OpenAI's chat completions and
// completions take and changes the text: max_tokens, max_completion_tokens, temperature, top_p, stop, seed,
// presence_penalty, frequency_penalty, logit_bias, tools, tool_choice "auto" or "none", response_format; besides
// top_k, min_p, typical_p, repeat_penalty, and open_thinking or enable_thinking, also in chat_template_kwargs. `user`,
// `store`, `metadata` and `service_tier` change nothing and are accepted. Throws RequestError for anything else and for
// values of another type or out of range, naming the field.
Request parse_request(std::string_view line, const RequestDefaults& defaults);

}  // namespace minimind
