#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/batch/request.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/request_error.h"

namespace minimind {

// The result of a request as a line of OpenAI's batch output, with a chat.completion or a text_completion as its body.
// `answers` are those of all texts of the request, whose tasks are equal except for their seeds.
std::string response_line(const LineId& id, const TextModel& model, const Request& request, const TextTask& task,
                          const std::vector<TextAnswer>& answers, std::time_t now);

// The error of a request as a line of OpenAI's error file.
std::string error_line(const LineId& id, const RequestError& error);

// The request whose result or error the line is, if it is one.
std::optional<LineId> request_of(std::string_view line);

}  // namespace minimind
