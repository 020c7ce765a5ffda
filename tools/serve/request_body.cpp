#include "tools/serve/request_body.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// Returns the bytes of all strings in JSON, and one for each list and object, because they take time, too. A \u with
// its four digits counts as three bytes, the most that it stands for.
std::size_t text_bytes(std::string_view json) {
  std::size_t bytes = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      bytes += c == '[' || c == '{' ? 1 : 0;
    } else if (c != '\\') {
      ++bytes;
    } else {
      const bool is_code = at + 1 < json.size() && json[at + 1] == 'u';
      bytes += is_code ? 3 : 1;
      at += is_code ? 5 : 1;
    }
  }
  return bytes;
}

void check_coding(const HttpRequest& request) {
  const std::string* const coding = request.header("content-encoding");
  if (!coding || *coding == "identity") return;
  throw RequestError(fmt::format("the content encoding is {}, expected a body that is not compressed", quote(*coding)),
                     "", "unsupported_media_type");
}

}  // namespace

bool has_json_type(const HttpRequest& request) {
  if (request.body.empty()) return true;
  const std::string* const type = request.header("content-type");
  return type && lower_case(type->substr(0, type->find_first_of("; \t"))) == "application/json";
}

bool is_from_page(const HttpRequest& request) {
  return request.header("origin") || request.header("sec-fetch-site");
}

ChatJson read_request_body(const HttpRequest& request, std::size_t most_text) {
  check_coding(request);
  if (const std::size_t bytes = text_bytes(request.body); bytes > most_text) {
    throw RequestError(
        fmt::format("the body has {} bytes of text, expected at most {}, the limit of the server's --max-text", bytes,
                    most_text),
        "", "text_too_large");
  }
  return parse_body(request.body);
}

}  // namespace minimind
