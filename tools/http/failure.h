#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// The reason for which a request is rejected, and the status of the answer.
struct HttpFailure {
  int status;
  std::string code;     // for programs, such as "host_not_allowed"
  std::string message;  // for people: one line, ASCII
};

// Returns the reason phrase of a status, such as "Not Found".
std::string_view http_reason(int status);

// Returns the failure as a body in the shape of OpenAI's errors: {"error": {"message", "type", "param", "code"}}.
std::string http_error_body(const HttpFailure& failure);

}  // namespace minimind
