#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/message_json.h"
#include "tests/fuzz/mutate_json.h"
#include "weights/base/error.h"

// Reads the input as a conversation in the forms of `render`, `chat` and of tools, renders it, and reads it as the
// answer of a model.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const ChatTemplate templates[] = {ChatTemplate::of_family(Family::v2, {}),
                                           ChatTemplate::of_family(Family::v3, {})};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ChatTemplate& chat_template : templates) {
    try {
      chat_template.render(parse_chat_input(text, "fuzz"), 0);
    } catch (const Error&) {
    }
  }
  try {
    conversation_json(parse_conversation(text, "fuzz"));
  } catch (const Error&) {
  }
  try {
    parse_tools(text, "fuzz");
  } catch (const Error&) {
  }
  AnswerParser parser(ThinkState::none);
  std::vector<AnswerEvent> events;
  for (std::size_t at = 0; at < size; at += 5) parser.push(text.substr(at, 5), events);
  parser.finish(events);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"messages",     "conversations",
                                        "role",         "system",
                                        "user",         "assistant",
                                        "tool",         "content",
                                        "name",         "function",
                                        "arguments",    "tool_calls",
                                        "tool_call_id", "parameters",
                                        "type",         "reasoning_content",
                                        "tools",        "open_thinking",
                                        "text",         "<think>",
                                        "</think>",     "<tool_call>{\"name\": \"f\"}</tool_call>"};
  return minimind::mutate_json(data, size, max_size, seed, words);
}
