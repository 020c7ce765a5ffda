#include "tools/batch/request.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/chat/chat_json.h"
#include "runtime/text/utf8.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"

namespace minimind {
namespace {

ChatJson parse_line(std::string_view line) {
  if (const auto at = first_not_utf8(line)) {
    throw RequestError(fmt::format("the line is not UTF-8 at byte {}", *at), "", "invalid_json");
  }
  try {
    ChatJson object = parse_chat_json(line, "the line");
    if (object.is_object()) return object;
  } catch (const Error& error) {
    throw RequestError(error.what(), "", "invalid_json");
  }
  throw RequestError("the line is not a JSON object", "", "invalid_json");
}

// Whether OpenAI's batch line is a chat. A body alone is one if it has messages.
bool is_chat(const ChatJson& line) {
  const auto text_of = [&](const char* name) {
    return line.contains(name) && line.at(name).is_string() ? line.at(name).get<std::string>() : "";
  };
  if (text_of("method") != "POST") throw RequestError("method is not \"POST\"", "method");
  if (text_of("url") == "/v1/chat/completions") return true;
  if (text_of("url") == "/v1/completions") return false;
  throw RequestError("url is neither \"/v1/chat/completions\" nor \"/v1/completions\"", "url");
}

// Reads OpenAI's batch line or a body alone.
Request read_line(const ChatJson& line, const RequestDefaults& defaults) {
  if (!line.contains("body")) return read_request(line, line.contains("messages"), defaults);
  if (!line.at("body").is_object()) throw RequestError("body is not an object", "body");
  return read_request(line.at("body"), is_chat(line), defaults);
}

}  // namespace

std::optional<std::string> custom_id_of(std::string_view line) {
  try {
    return BodyFields(parse_chat_json(line, "the line", LargeIntegers::rounded)).text("custom_id");
  } catch (const Error&) {
    return std::nullopt;
  }
}

ParsedLine parse_request(std::string_view line, const RequestDefaults& defaults) {
  const ChatJson object = parse_line(line);
  std::optional<std::string> custom_id = BodyFields(object).text("custom_id");
  return about("", [&]() -> ParsedLine { return {read_line(object, defaults), std::move(custom_id)}; });
}

}  // namespace minimind
