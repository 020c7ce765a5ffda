#pragma once

#include <cstddef>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/chat/chat_json.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/request.h"

namespace minimind {

// The events of a streamed answer, each "data: {...}\n\n".
class AnswerChunks {
 public:
  AnswerChunks(const std::string& id, const std::string& model, const Request& request, std::time_t now);

  // A chunk with one choice of a chat.
  std::string delta(std::size_t index, const ChatJson& delta, const ChatJson& logprobs = {}) const;

  // A chunk with a piece of text of a choice: in the field of a chat's delta, or of a completion's choice.
  std::string text(std::size_t index, std::string_view field, std::string_view text,
                   const ChatJson& logprobs = {}) const;

  // The last chunk of a choice.
  std::string end(std::size_t index, std::string_view finish_reason) const;

  // The last chunk of a stream with include_usage.
  std::string usage(const Usage& usage) const;

  static std::string error(const std::string& body);
  static std::string done();

 private:
  std::string chunk(std::string_view choice) const;

  bool chat_;
  bool include_usage_;
  std::string head_;  // the fields before the choices
};

}  // namespace minimind
