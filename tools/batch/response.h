#pragma once

#include <cstddef>
#include <ctime>
#include <string>

#include "runtime/chat/message.h"
#include "runtime/generate/generate.h"
#include "tools/batch/request.h"

namespace minimind {

// What the lines of one text are made of.
struct LineId {
  std::size_t number;     // of its line in the input
  std::string custom_id;  // the request's, or "line-N"
};

// The result of a request as a line of OpenAI's batch output, with a chat.completion or a text_completion as its body.
// `answer` is the text of a chat, read as a message.
std::string response_line(const LineId& id, const std::string& model, const Request& request, const Generated& result,
                          const Message& answer, std::size_t prompt_tokens, std::time_t now);

// The error of a request as a line of OpenAI's error file.
std::string error_line(const LineId& id, const RequestError& error);

}  // namespace minimind
