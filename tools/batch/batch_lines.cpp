#include "tools/batch/batch_lines.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/chat/chat_json.h"
#include "tools/openai/body_fields.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

// Whether OpenAI's batch line is a chat. A body alone is one if it has messages.
bool is_chat(const ChatJson& line) {
  if (text_or_empty(line, "method") != "POST") throw RequestError("method is not \"POST\"", "method");
  const std::string url = text_or_empty(line, "url");
  if (url == "/v1/chat/completions") return true;
  if (url == "/v1/completions") return false;
  throw RequestError("url is neither \"/v1/chat/completions\" nor \"/v1/completions\"", "url");
}

// Reads OpenAI's batch line or a body alone.
Request read_line(const ChatJson& line, const RequestDefaults& defaults) {
  if (!line.contains("body")) return read_request(line, line.contains("messages"), defaults);
  if (!line.at("body").is_object()) throw RequestError("body is not an object", "body");
  return read_request(line.at("body"), is_chat(line), defaults);
}

constexpr int deepest_line = 150;

std::string line_of(const LineId& id, int status, ChatJson body) {
  const ChatJson line{
      {"id", fmt::format("{}{}", batch_id_prefix, id.number)},
      {"custom_id", id.custom_id},
      {"response",
       {{"status_code", status}, {"request_id", fmt::format("req_{}", id.number)}, {"body", std::move(body)}}},
      {"error", nullptr}};
  return json_line(line) + "\n";
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
  const ChatJson object = parse_body(line, "the line");
  std::optional<std::string> custom_id = BodyFields(object).text("custom_id");
  return about("", [&]() -> ParsedLine { return {read_line(object, defaults), std::move(custom_id)}; });
}

std::string response_line(const LineId& id, const TextModel& model, const Request& request, const TextTask& task,
                          const std::vector<TextAnswer>& answers, std::time_t created) {
  Usage usage{.prompt_tokens = task.prompt.size()};  // none of them cached, which other texts would decide
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
  ChatJson answer = answer_json(fmt::format("{}{}", id_prefix_of(request), id.number), model.names().front(), request,
                                std::move(choices), usage, created);
  if (request.chat) add_prompt_facts(answer, model, request, task, answers.front().generated);
  return line_of(id, 200, std::move(answer));
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
  const std::string id = text_or_empty(object, "id");
  if (!id.starts_with(batch_id_prefix) || !object.contains("custom_id")) return std::nullopt;
  const auto number = number_in<std::size_t>(std::string_view(id).substr(batch_id_prefix.size()));
  return number ? std::optional(LineId{*number, text_or_empty(object, "custom_id")}) : std::nullopt;
}

}  // namespace minimind
