#include "tools/serve/answer_chunks.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace minimind {

AnswerChunks::AnswerChunks(const std::string& id, const std::string& model, const Request& request, std::time_t now)
    : chat_(request.chat), include_usage_(request.include_usage) {
  head_ = json_line({{"id", id},
                     {"object", chat_ ? "chat.completion.chunk" : "text_completion"},
                     {"created", now},
                     {"model", model}});
  head_.back() = ',';
}

std::string AnswerChunks::chunk(std::string_view choice) const {
  return fmt::format("data: {} \"choices\": [{}]{}}}\n\n", head_, choice, include_usage_ ? ", \"usage\": null" : "");
}

std::string AnswerChunks::delta(std::size_t index, const ChatJson& delta, const ChatJson& logprobs) const {
  return chunk(json_line({{"index", index}, {"delta", delta}, {"logprobs", logprobs}, {"finish_reason", nullptr}}));
}

// Nearly every token comes here, and the model waits for it: no objects are made.
std::string AnswerChunks::text(std::size_t index, std::string_view field, std::string_view text,
                               const ChatJson& logprobs) const {
  const std::string value = json_line(ChatJson(text));
  const std::string scores = logprobs.is_null() ? "null" : json_line(logprobs);
  return chunk(chat_ ? fmt::format(R"({{"index": {}, "delta": {{"{}": {}}}, "logprobs": {}, "finish_reason": null}})",
                                   index, field, value, scores)
                     : fmt::format(R"({{"index": {}, "{}": {}, "logprobs": {}, "finish_reason": null}})", index, field,
                                   value, scores));
}

std::string AnswerChunks::end(std::size_t index, std::string_view finish_reason) const {
  ChatJson choice{{"index", index}};
  if (chat_) {
    choice["delta"] = ChatJson::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_reason;
  return chunk(json_line(choice));
}

std::string AnswerChunks::usage(const Usage& usage) const {
  return fmt::format("data: {} \"choices\": [], \"usage\": {}}}\n\n", head_, json_line(usage_json(usage)));
}

std::string AnswerChunks::error(const std::string& body) {
  return "data: " + body + "\n\n";
}

std::string AnswerChunks::done() {
  return "data: [DONE]\n\n";
}

}  // namespace minimind
