#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tools/openai/request.h"

namespace minimind {

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

}  // namespace minimind
