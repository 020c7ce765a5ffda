#include "tools/http/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <stdexcept>

#include "weights/base/text.h"

namespace minimind {
namespace {

struct Reason {
  int status;
  std::string_view text;
};

constexpr std::array reasons = {
    Reason{200, "OK"},
    Reason{204, "No Content"},
    Reason{304, "Not Modified"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{408, "Request Timeout"},
    Reason{413, "Content Too Large"},
    Reason{414, "URI Too Long"},
    Reason{415, "Unsupported Media Type"},
    Reason{417, "Expectation Failed"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{503, "Service Unavailable"},
    Reason{505, "HTTP Version Not Supported"},
};

// Returns the time as HTTP writes it, in English regardless of the locale: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string date() {
  constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[static_cast<std::size_t>(parts.tm_wday)],
                     parts.tm_mday, months[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

void append(std::string& text, std::string_view name, std::string_view value) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control) || std::any_of(value.begin(), value.end(), is_control)) {
    throw std::logic_error("a header field of an answer has a control character");
  }
  text += fmt::format("{}: {}\r\n", name, value);
}

bool has(const HttpHeaders& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(),
                     [name](const auto& field) { return lower_case(field.first) == name; });
}

}  // namespace

std::string_view http_reason(int status) {
  const auto found =
      std::find_if(reasons.begin(), reasons.end(), [status](const Reason& reason) { return reason.status == status; });
  return found == reasons.end() ? std::string_view("Unknown") : found->text;
}

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

std::string http_error_body(const HttpFailure& failure) {
  return fmt::format(R"({{"error": {{"message": {}, "type": "{}", "param": null, "code": {}}}}})",
                     json_string(failure.message), failure.status < 500 ? "invalid_request_error" : "server_error",
                     json_string(failure.code));
}

std::string http_head(const HttpHead& head, const HttpHeaders& fields) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", head.status, http_reason(head.status));
  append(text, "Date", date());
  const bool has_no_body = head.status == 204 || head.status == 304;
  if (!head.content_type.empty()) append(text, "Content-Type", head.content_type);
  if (head.length && !has_no_body) append(text, "Content-Length", std::to_string(*head.length));
  if (!head.length && head.is_http_1_1) append(text, "Transfer-Encoding", "chunked");
  if (!head.length) append(text, "X-Accel-Buffering", "no");  // so that nginx passes each piece on at once
  if (!has(fields, "cache-control")) append(text, "Cache-Control", head.length ? "no-store" : "no-cache");
  append(text, "X-Content-Type-Options", "nosniff");
  if (head.closes) {
    append(text, "Connection", "close");
  } else if (!head.is_http_1_1) {
    append(text, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : fields) append(text, name, value);
  return text + "\r\n";
}

std::string http_chunk(std::string_view piece) {
  return fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
}

}  // namespace minimind
