#include "tools/batch/response.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "runtime/chat/chat_json.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

constexpr std::string_view id_prefix = "batch_req_";
constexpr int deepest_line = 150;

std::string line_of(const LineId& id, int status, ChatJson body) {
  const ChatJson line{
      {"id", fmt::format("{}{}", id_prefix, id.number)},
      {"custom_id", id.custom_id},
      {"response",
       {{"status_code", status}, {"request_id", fmt::format("req_{}", id.number)}, {"body", std::move(body)}}},
      {"error", nullptr}};
  return json_line(line) + "\n";
}

}  // namespace

std::string response_line(const LineId& id, const TextModel& model, const Request& request, const TextTask& task,
                          const std::vector<TextAnswer>& answers, std::time_t now) {
  Usage usage{.prompt_tokens = task.prompt.size(), .cached_tokens = answers.front().generated.prompt_tokens_reused};
  std::vector<const Generated*> texts;
  for (const TextAnswer& answer : answers) {
    usage.completion_tokens += answer.generated.tokens.size();
    usage.thought_tokens += thought_tokens(model, task, answer.generated.tokens);
    texts.push_back(&answer.generated);
  }
  ChatJson choices = ChatJson::array();
  for (const std::size_t text : chosen_texts(request, texts)) {
    choices.push_back(choice_json(model, request, task, answers[text], choices.size()));
  }
  return line_of(id, 200,
                 answer_json(fmt::format("{}{}", id_prefix_of(request), id.number), model.names().front(), request,
                             std::move(choices), usage, now));
}

std::string error_line(const LineId& id, const RequestError& error) {
  return line_of(id, error.status(), error_json(error));
}

std::optional<LineId> request_of(std::string_view line) {
  ChatJson object;
  try {
    object = parse_json<ChatJson>(line, "the line", deepest_line, "an answer");
  } catch (const Error&) {
    return std::nullopt;
  }
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
