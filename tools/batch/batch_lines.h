#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/openai/answer_body.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"

namespace minimind {

// The id of every result starts with this.
inline constexpr std::string_view batch_id_prefix = "batch_req_";

// Names a request in its result.
struct LineId {
  std::size_t number;     // of its line in the input
  std::string custom_id;  // the request's, or "line-N"

  bool operator==(const LineId&) const = default;
};

// The custom_id of a line of a batch, if it is a JSON object that has one which is a string.
std::optional<std::string> custom_id_of(std::string_view line);

// A line of a batch, read.
struct ParsedLine {
  Request request;
  std::optional<std::string> custom_id;
};

// Reads a line of a batch: OpenAI's {"custom_id", "method", "url", "body"}, or a body alone, {"messages": [...]} or
// {"prompt": "text" or [ids]}, with or without custom_id, which is a string. Throws RequestError as read_request()
// does.
ParsedLine parse_request(std::string_view line, const RequestDefaults& defaults);

// The result of a request as a line of OpenAI's batch output, with a chat.completion or a text_completion as its body.
// `answers` are those of all texts of the request, whose tasks are equal except for their seeds. Equal requests have
// equal lines if they were `created` at the same time.
std::string response_line(const LineId& id, const TextModel& model, const Request& request, const TextTask& task,
                          const std::vector<TextAnswer>& answers, std::time_t created);

// The error of a request as a line of OpenAI's error file.
std::string error_line(const LineId& id, const RequestError& error);

// The request whose result or error the line is, if it is one.
std::optional<LineId> request_of(std::string_view line);

}  // namespace minimind
