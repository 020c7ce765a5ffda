#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/chat/chat_json.h"
#include "tests/fuzz/mutate_json.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"

// Reads the input as the body of a chat completion, or of a completion if the first byte is odd, as the server does
// with one that is UTF-8. Anything but a RequestError is a bug: it would be answered with status 500.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  ChatJson body;
  try {
    body = parse_chat_json(bytes, "the body");
  } catch (const Error&) {
    return 0;
  }
  if (!body.is_object()) return 0;
  try {
    read_request(body, data[0] % 2 == 0, {.model_names = {"m"}});
  } catch (const RequestError&) {
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"model",
                                        "messages",
                                        "role",
                                        "user",
                                        "assistant",
                                        "system",
                                        "tool",
                                        "content",
                                        "type",
                                        "text",
                                        "image_url",
                                        "prompt",
                                        "stream",
                                        "stream_options",
                                        "include_usage",
                                        "max_tokens",
                                        "max_completion_tokens",
                                        "temperature",
                                        "top_p",
                                        "n",
                                        "best_of",
                                        "stop",
                                        "seed",
                                        "logprobs",
                                        "top_logprobs",
                                        "logit_bias",
                                        "tools",
                                        "tool_choice",
                                        "allowed_tools",
                                        "guided_json",
                                        "guided_regex",
                                        "guided_choice",
                                        "structured_outputs",
                                        "function",
                                        "name",
                                        "parameters",
                                        "arguments",
                                        "tool_calls",
                                        "tool_call_id",
                                        "id",
                                        "response_format",
                                        "json_schema",
                                        "json_object",
                                        "schema",
                                        "strict",
                                        "grammar",
                                        "reasoning_effort",
                                        "chat_template_kwargs",
                                        "enable_thinking",
                                        "open_thinking",
                                        "metadata",
                                        "user",
                                        "echo",
                                        "parallel_tool_calls",
                                        "auto",
                                        "required",
                                        "none"};
  return minimind::mutate_json(data, size, max_size, seed, words, 1);
}
