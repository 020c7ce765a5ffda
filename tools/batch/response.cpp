#include "tools/batch/response.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/message_json.h"

namespace minimind {
namespace {

constexpr std::string_view id_prefix = "batch_req_";

std::string line_of(const LineId& id, int status, ChatJson body) {
  const ChatJson line{
      {"id", fmt::format("{}{}", id_prefix, id.number)},
      {"custom_id", id.custom_id},
      {"response",
       {{"status_code", status}, {"request_id", fmt::format("req_{}", id.number)}, {"body", std::move(body)}}},
      {"error", nullptr}};
  return json_line(line) + "\n";
}

ChatJson choice_of(const Request& request, const Generated& result, const Message& answer) {
  if (!request.chat) {
    return {
        {"index", 0}, {"text", result.text}, {"logprobs", nullptr}, {"finish_reason", name_of(result.finish_reason)}};
  }
  return {{"index", 0},
          {"message", messages_json({answer}, false).at(0)},
          {"logprobs", nullptr},
          {"finish_reason", finish_reason_name(result.finish_reason, answer)}};
}

}  // namespace

std::string response_line(const LineId& id, const std::string& model, const Request& request, const Generated& result,
                          const Message& answer, std::size_t prompt_tokens, std::time_t now) {
  return line_of(id, 200,
                 {{"id", fmt::format("{}-{}", request.chat ? "chatcmpl" : "cmpl", id.number)},
                  {"object", request.chat ? "chat.completion" : "text_completion"},
                  {"created", now},
                  {"model", model},
                  {"choices", ChatJson::array({choice_of(request, result, answer)})},
                  {"usage",
                   {{"prompt_tokens", prompt_tokens},
                    {"completion_tokens", result.tokens.size()},
                    {"total_tokens", prompt_tokens + result.tokens.size()},
                    {"prompt_tokens_details", {{"cached_tokens", result.prompt_tokens_reused}}}}}});
}

std::string error_line(const LineId& id, const RequestError& error) {
  return line_of(id, error.code() == "model_not_found" ? 404 : 400,
                 {{"error",
                   {{"message", error.what()},
                    {"type", "invalid_request_error"},
                    {"param", error.param().empty() ? ChatJson(nullptr) : ChatJson(error.param())},
                    {"code", error.code()}}}});
}

std::optional<LineId> request_of(std::string_view line) {
  const auto object = ChatJson::parse(line, nullptr, false);
  const auto text_of = [&](const char* name) {
    return object.is_object() && object.contains(name) && object.at(name).is_string()
               ? object.at(name).get<std::string>()
               : std::string();
  };
  const std::string id = text_of("id");
  std::size_t number = 0;
  const bool numbered = id.starts_with(id_prefix) &&
                        std::from_chars(id.data() + id_prefix.size(), id.data() + id.size(), number).ec == std::errc();
  if (!numbered || !object.contains("custom_id")) return std::nullopt;
  return LineId{number, text_of("custom_id")};
}

}  // namespace minimind
