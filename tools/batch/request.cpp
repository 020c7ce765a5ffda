#include "tools/batch/request.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/message_json.h"
#include "runtime/grammar/json_schema.h"
#include "runtime/text/utf8.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

// A request's body, read field by field. A field that is null counts as missing.
class Body {
 public:
  explicit Body(const ChatJson& object) : object_(object) {}

  const ChatJson* find(const std::string& name) {
    known_.insert(name);
    const auto field = object_.find(name);
    return field == object_.end() || field->is_null() ? nullptr : &*field;
  }

  std::optional<double> number(const std::string& name, double least, double most) {
    const ChatJson* const value = find(name);
    if (!value) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!(number >= least && number <= most)) fail(name, fmt::format("a number from {} to {}", least, most));
    return number;
  }

  std::optional<std::uint64_t> whole(const std::string& name, std::uint64_t least, std::uint64_t most) {
    const ChatJson* const value = find(name);
    if (!value) return std::nullopt;
    const bool in_range =
        value->is_number_unsigned() && value->get<std::uint64_t>() >= least && value->get<std::uint64_t>() <= most;
    if (!in_range) fail(name, fmt::format("a whole number from {} to {}", least, most));
    return value->get<std::uint64_t>();
  }

  std::optional<bool> flag(const std::string& name) {
    const ChatJson* const value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) fail(name, "true or false");
    return value->get<bool>();
  }

  std::optional<std::string> text(const std::string& name) {
    const ChatJson* const value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string()) fail(name, "a string");
    return value->get<std::string>();
  }

  // Fields whose other values would ask for what is not there.
  void require(const std::string& name, const ChatJson& only) {
    const ChatJson* const value = find(name);
    if (value && *value != only) fail(name, json_line(only) + ", because anything else is not supported");
  }

  void reject_the_rest() const {
    for (const auto& [name, value] : object_.items()) {
      if (!known_.contains(name)) {
        throw RequestError(fmt::format("{} is not a field that is supported", quote(name)), name,
                           "unsupported_parameter");
      }
    }
  }

  [[noreturn]] void fail(const std::string& name, const std::string& expected) const {
    throw RequestError(fmt::format("{} is {}, expected {}", name, shown(object_.at(name)), expected), name);
  }

 private:
  static std::string shown(const ChatJson& value) {
    return value.is_structured() ? std::string(kind_of(value)) : json_line(value);
  }

  const ChatJson& object_;
  std::set<std::string> known_;
};

constexpr std::uint64_t most_tokens = 1 << 30;

std::vector<std::string> read_stop(Body& body) {
  const ChatJson* const stop = body.find("stop");
  if (!stop) return {};
  const ChatJson list = stop->is_array() ? *stop : ChatJson::array({*stop});
  std::vector<std::string> texts;
  for (const ChatJson& text : list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      body.fail("stop", "a string or a list of strings, none of them empty");
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::vector<LogitBias> read_logit_bias(Body& body) {
  const ChatJson* const biases = body.find("logit_bias");
  std::vector<LogitBias> result;
  if (!biases) return result;
  if (!biases->is_object()) body.fail("logit_bias", "an object of token ids and numbers");
  for (const auto& [name, bias] : biases->items()) {
    std::int32_t token = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
    const bool is_id = error == std::errc() && end == name.data() + name.size() && token >= 0;
    const double value = bias.is_number() ? bias.get<double>() : NAN;
    if (!is_id || !(std::abs(value) <= 100))
      body.fail("logit_bias", "an object of token ids and numbers from -100 to 100");
    result.push_back({token, value});
  }
  return result;
}

void read_sampling(Body& body, Request& request) {
  SamplingOptions& sampling = request.sampling;
  sampling.temperature = body.number("temperature", 0, 100).value_or(sampling.temperature);
  sampling.top_p = body.number("top_p", 0, 1).value_or(sampling.top_p);
  sampling.min_p = body.number("min_p", 0, 1).value_or(sampling.min_p);
  sampling.typical_p = body.number("typical_p", 0, 1).value_or(sampling.typical_p);
  sampling.top_k = body.whole("top_k", 0, most_tokens).value_or(sampling.top_k);
  sampling.repeat_penalty = body.number("repeat_penalty", 0, 100).value_or(sampling.repeat_penalty);
  sampling.presence_penalty = body.number("presence_penalty", -2, 2).value_or(sampling.presence_penalty);
  sampling.frequency_penalty = body.number("frequency_penalty", -2, 2).value_or(sampling.frequency_penalty);
  if (const auto seed = body.whole("seed", 0, ~std::uint64_t{0})) {
    sampling.seed = *seed;
    request.has_seed = true;
  }
  if (auto biases = read_logit_bias(body); !biases.empty()) sampling.logit_bias = std::move(biases);
}

std::shared_ptr<const Grammar> read_response_format(Body& body) {
  const ChatJson* const format = body.find("response_format");
  if (!format) return nullptr;
  const auto type = format->is_object() ? format->value("type", "") : "";
  if (type == "text") return nullptr;
  if (type == "json_object") {
    return std::make_shared<Grammar>(json_schema_grammar(ChatJson{{"type", "object"}}, "response_format"));
  }
  const bool has_schema = type == "json_schema" && format->contains("json_schema") &&
                          format->at("json_schema").is_object() && format->at("json_schema").contains("schema");
  if (!has_schema) {
    body.fail("response_format", R"({"type": "text"}, {"type": "json_object"}, or {"type": "json_schema", )"
                                 R"("json_schema": {"schema": ...}})");
  }
  JsonSchemaOptions options;
  options.closed = true;
  return std::make_shared<Grammar>(
      compile_json_schema(format->at("json_schema").at("schema"), "response_format.json_schema.schema", options)
          .grammar);
}

void read_thinking(Body& body, Request& request) {
  for (const char* const name : {"open_thinking", "enable_thinking"}) {
    if (const auto think = body.flag(name)) request.think = think;
  }
  const ChatJson* const settings = body.find("chat_template_kwargs");
  if (!settings) return;
  if (!settings->is_object()) body.fail("chat_template_kwargs", "an object");
  Body fields(*settings);
  for (const char* const name : {"open_thinking", "enable_thinking"}) {
    if (const auto think = fields.flag(name)) request.think = think;
  }
  fields.reject_the_rest();
}

void read_chat(Body& body, Request& request) {
  const ChatJson* const messages = body.find("messages");
  if (!messages)
    throw RequestError("messages is missing, expected a list of messages", "messages", "missing_required_parameter");
  request.messages = parse_conversation(json_line(*messages), "messages").messages;
  if (request.messages.empty() || request.messages.back().role == Role::assistant) {
    throw RequestError("messages ends with an answer, expected a message of the user or the result of a tool",
                       "messages");
  }
  const ChatJson* const choice = body.find("tool_choice");
  if (choice && *choice != "auto" && *choice != "none") body.fail("tool_choice", "\"auto\" or \"none\"");
  if (const ChatJson* const tools = body.find("tools"); tools && !(choice && *choice == "none")) {
    request.tools = parse_tools(json_line(*tools), "tools");
  }
  if (auto grammar = read_response_format(body)) request.grammar = std::move(grammar);
  read_thinking(body, request);
  body.require("logprobs", false);
  body.find("parallel_tool_calls");
}

void read_completion(Body& body, Request& request) {
  const ChatJson* const prompt = body.find("prompt");
  if (!prompt)
    throw RequestError("prompt is missing, expected a string or a list of token ids", "prompt",
                       "missing_required_parameter");
  if (prompt->is_string()) {
    request.prompt = prompt->get<std::string>();
  } else {
    const auto is_id = [](const ChatJson& id) {
      return id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX;
    };
    if (!prompt->is_array() || !std::ranges::all_of(*prompt, is_id))
      body.fail("prompt", "a string or a list of token ids");
    request.tokens = prompt->get<std::vector<std::int32_t>>();
  }
  if (request.prompt.empty() && request.tokens.empty()) body.fail("prompt", "at least one token");
  body.require("echo", false);
  body.require("best_of", 1);
  body.require("suffix", "");
  body.find("logprobs") ? body.fail("logprobs", "null, because log-probabilities are not supported") : void();
}

Request read_body(const ChatJson& object, bool chat, const RequestDefaults& defaults) {
  Body body(object);
  Request request{
      .chat = chat, .sampling = defaults.sampling, .max_tokens = defaults.max_tokens, .grammar = defaults.grammar};
  if (const auto model = body.text("model"); model && std::ranges::count(defaults.model_names, *model) == 0) {
    throw RequestError(fmt::format("model is {}, expected {}", quote(*model), quote(defaults.model_names.front())),
                       "model", "model_not_found");
  }
  for (const char* const name : {"max_tokens", "max_completion_tokens"}) {
    request.max_tokens = body.whole(name, 1, most_tokens).value_or(request.max_tokens);
  }
  read_sampling(body, request);
  request.stop = read_stop(body);
  chat ? read_chat(body, request) : read_completion(body, request);
  body.require("n", 1);
  body.require("stream", false);
  for (const char* const harmless : {"custom_id", "user", "store", "metadata", "service_tier", "stream_options"}) {
    body.find(harmless);
  }
  body.reject_the_rest();
  return request;
}

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

std::optional<std::string> custom_id_in(const ChatJson& line) {
  if (!line.is_object() || !line.contains("custom_id") || !line.at("custom_id").is_string()) return std::nullopt;
  return line.at("custom_id").get<std::string>();
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
  if (!line.contains("body")) return read_body(line, line.contains("messages"), defaults);
  if (!line.at("body").is_object()) throw RequestError("body is not an object", "body");
  return read_body(line.at("body"), is_chat(line), defaults);
}

}  // namespace

std::optional<std::string> custom_id_of(std::string_view line) {
  return custom_id_in(ChatJson::parse(line, nullptr, false));
}

Request parse_request(std::string_view line, const RequestDefaults& defaults) {
  const ChatJson object = parse_line(line);
  try {
    Request request = read_line(object, defaults);
    request.custom_id = custom_id_in(object);
    return request;
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(error.what(), "");
  }
}

}  // namespace minimind
