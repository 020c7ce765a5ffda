#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace minimind {

// One answered request of the access log. Never contains contents: no query, no header field, no body.
struct HttpLogEntry {
  std::chrono::system_clock::time_point time;
  std::string_view client;  // "127.0.0.1:41234" or "unix"
  std::string_view method;  // empty if the request was too malformed to have one
  std::string_view path;    // as sent, without the query
  int status = 0;           // 0: the client disconnected before the answer
  std::size_t bytes = 0;    // of the body, sent
  std::chrono::steady_clock::duration took{};
  std::string_view remark;  // such as "disconnected"; empty usually
  std::string_view id{};    // X-Request-Id of the answer; empty if the request was too malformed to have one
};

// Returns "2026-01-31T12:00:00.123Z 127.0.0.1:41234 POST /v1/completions 200 1234 56.7ms" with the remark at the end.
// Missing parts are "-". Bytes that a terminal would interpret are escaped.
std::string http_log_line(const HttpLogEntry& entry);

// Returns the same as a JSON object with "time", "client", "method", "path", "status", "bytes", "ms", "request_id" and
// "remark".
std::string http_log_json(const HttpLogEntry& entry);

using HttpLog = std::function<void(const std::string& line)>;

}  // namespace minimind
