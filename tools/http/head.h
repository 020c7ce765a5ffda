#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "tools/http/http.h"

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

// Returns a string of JSON, with its quotes.
std::string json_string(std::string_view text);

// The status line and header fields of an answer.
struct HttpHead {
  int status = 200;
  std::string_view content_type;
  std::optional<std::size_t> length;  // nullopt: in pieces
  bool is_http_1_1 = true;
  bool closes = false;  // the connection closes after the answer
};

// Returns the head with its empty line at the end. Throws std::logic_error if a field has a control character, which
// could start another field.
std::string http_head(const HttpHead& head, const HttpHeaders& fields);

// Returns a piece of a chunked body. Must not be empty, which would end the body.
std::string http_chunk(std::string_view piece);

constexpr std::string_view last_http_chunk = "0\r\n\r\n";

}  // namespace minimind
