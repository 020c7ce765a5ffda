#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/chat/message.h"
#include "runtime/generate/generate.h"
#include "tools/batch/request.h"

namespace minimind {

// The result of a request as a line of OpenAI's batch output, with a chat.completion or a text_completion as its body.
// `answer` is the text of a chat, read as a message.
std::string response_line(const LineId& id, const std::string& model, const Request& request, const Generated& result,
                          const Message& answer, std::size_t prompt_tokens, std::time_t now);

// The error of a request as a line of OpenAI's error file.
std::string error_line(const LineId& id, const RequestError& error);

// The request whose result or error the line is, if it is one.
std::optional<LineId> request_of(std::string_view line);

}  // namespace minimind
