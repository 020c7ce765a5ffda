#include "tools/http/failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace minimind {
namespace {

struct Reason {
  int status;
  std::string_view text;
};

constexpr std::array reasons = {
    Reason{100, "Continue"},
    Reason{200, "OK"},
    Reason{201, "Created"},
    Reason{202, "Accepted"},
    Reason{204, "No Content"},
    Reason{304, "Not Modified"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{406, "Not Acceptable"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{413, "Content Too Large"},
    Reason{414, "URI Too Long"},
    Reason{415, "Unsupported Media Type"},
    Reason{417, "Expectation Failed"},
    Reason{422, "Unprocessable Content"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{503, "Service Unavailable"},
    Reason{505, "HTTP Version Not Supported"},
};

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

}  // namespace

std::string_view http_reason(int status) {
  const auto found =
      std::find_if(reasons.begin(), reasons.end(), [status](const Reason& reason) { return reason.status == status; });
  return found == reasons.end() ? std::string_view("Unknown") : found->text;
}

std::string http_error_body(const HttpFailure& failure) {
  return fmt::format(R"({{"error": {{"message": {}, "type": "{}", "param": null, "code": {}}}}})",
                     json_string(failure.message), failure.status < 500 ? "invalid_request_error" : "server_error",
                     json_string(failure.code));
}

}  // namespace minimind
