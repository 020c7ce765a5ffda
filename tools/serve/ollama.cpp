#include "tools/serve/ollama.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/message_json.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/tool_choice.h"
#include "tools/serve/answer_reader.h"
#include "tools/serve/ollama_models.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::string_view lines_type = "application/x-ndjson";
constexpr std::size_t most_message_fields = 100;
using Clock = std::chrono::steady_clock;

struct OllamaRequest {
  Request text;
  std::string model;
  bool stream = true;
  bool only_loads = false;  // there is nothing to answer
};

// Clients ask for a context of their own whatever the model is: as in Ollama, a text has what the model has at most.
void read_context(const BodyFields& fields, std::size_t positions, Request& request) {
  request.context = fields.whole("num_ctx", 1, largest_whole);
  if (request.context <= positions) return;
  request.context.reset();
  request.hints.push_back(fmt::format("options.num_ctx over the {} of the server's --ctx-size", positions));
}

void read_options(const ChatJson& object, std::size_t positions, Request& request) {
  BodyFields fields(object, "options");
  fields.read_parameters(request, Dialect::ollama);
  read_context(fields, positions, request);
  require_no_other_sampling(fields, Dialect::ollama);
  fields.require("embedding_only", false);  // of all options of Ollama's clients
  fields.require("tool_choice", "auto");    // any-llm sends OpenAI's fields among the options
  // Of the machine, or without effect here: prompts are never cut, and mirostat is off.
  fields.take_hints(
      {"num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "numa", "use_mmap", "use_mlock", "low_vram",
       "f16_kv", "logits_all", "vocab_only", "num_gqa", "mirostat_tau", "mirostat_eta", "draft_num_predict", "user"},
      request.hints);
  fields.reject_the_rest();
}

void read_format(const BodyFields& body, Request& request) {
  const ChatJson* const format = body.find("format");
  if (!format || *format == "") return;
  if (*format != "json" && !format->is_object()) body.fail("format", R"("json" or a JSON Schema)");
  request.grammar = about("format", [&]() -> std::shared_ptr<const Grammar> {
    if (format->is_object()) return schema_grammar(*format, "format");
    return schema_grammar(ChatJson{{"type", "object"}}, "format", true);
  });
  request.grammar_param = "format";
}

void read_think(const BodyFields& body, Request& request) {
  const ChatJson* const think = body.find("think");
  if (!think) return;
  const auto levels = {"low", "medium", "high", "max"};
  const bool is_level = std::ranges::count(levels, *think) > 0;
  if (!think->is_boolean() && !is_level) body.fail("think", R"(true, false, "low", "medium", "high" or "max")");
  request.think = is_level || *think == true;
}

// A message in the form of OpenAI's API.
ChatJson openai_message(const ChatJson& message, std::size_t number) {
  if (!message.is_object()) {
    throw RequestError(fmt::format("messages: message {} is {}, expected an object", number, kind_of(message)),
                       "messages");
  }
  if (message.size() > most_message_fields) {
    throw RequestError(fmt::format("messages: message {} has {} fields, expected at most {}", number, message.size(),
                                   most_message_fields),
                       "messages");
  }
  ChatJson result = ChatJson::object();
  for (const auto& [key, value] : message.items()) {
    if (key == "thinking") {
      if (value != "") result["reasoning_content"] = value;
    } else if (key == "tool_name") {
      result["name"] = value;
    } else if (key == "images" && !value.empty()) {
      throw RequestError(fmt::format("messages: message {} has images, but the model reads text only", number),
                         "messages");
    } else if (key == "role" && value.is_string()) {  // Ollama's are in any case
      result["role"] = lower_case(value.get<std::string>());
    } else {
      result[key] = value;
    }
  }
  if (ChatJson& content = result["content"]; content.is_null()) content = "";  // Ollama's client omits what is none
  const auto calls = result.find("tool_calls");
  if (calls == result.end() || !calls->is_array()) return result;
  for (ChatJson& call : *calls) {
    if (!call.is_object()) continue;
    if (!call.contains("type")) call["type"] = "function";
    if (call.contains("function") && call["function"].is_object()) call["function"].erase("index");
  }
  return result;
}

void read_chat(const BodyFields& body, OllamaRequest& request) {
  const ChatJson* const given = body.find("messages");
  if (given && !given->is_array()) body.fail("messages", "a list of messages");
  request.only_loads = !given || given->empty();
  ChatJson messages = ChatJson::array();
  if (given) {
    for (const ChatJson& message : *given) messages.push_back(openai_message(message, messages.size() + 1));
  }
  ChatJson tools = ChatJson::object();
  if (const ChatJson* const list = body.find("tools")) tools["tools"] = *list;
  BodyFields fields(tools);
  ToolChoice choice = read_tools(fields);
  request.text.tools = std::move(choice.tools);
  request.text.call_grammar = std::move(choice.grammar);
  if (request.only_loads) return;
  request.text.messages = about("messages", [&] { return read_messages(messages, false, "messages"); });
  take_message_hints(messages, request.text.hints);
  const Message& last = request.text.messages.back();
  request.text.continues = last.role == Role::assistant;
  if (request.text.continues && !last.tool_calls.empty()) {
    throw RequestError("messages ends with a call, expected its result", "messages");
  }
}

void read_prompt(const BodyFields& body, OllamaRequest& request, const Tokenizer& tokenizer) {
  const std::string prompt = body.text("prompt").value_or("");
  const auto system = body.text("system");
  const bool is_raw = body.flag("raw").value_or(false);
  request.only_loads = prompt.empty();
  require_no_suffix(body);
  body.require("template", "");
  for (const char* const name : {"images", "context"}) body.require(name, ChatJson::array());
  request.text.chat = !is_raw;
  if (is_raw) {
    if (system && !system->empty()) body.fail("system", "nothing, because a raw prompt has it");
    if (!prompt.empty()) request.text.prompts.push_back({.tokens = tokenizer.encode_with_special(prompt)});
    return;
  }
  if (system && !system->empty()) request.text.messages.push_back({.role = Role::system, .content = *system});
  request.text.messages.push_back({.role = Role::user, .content = prompt});
}

void read_logprobs(const BodyFields& body, Request& request) {
  const bool wanted = body.flag("logprobs").value_or(false);
  const auto top = body.whole("top_logprobs", 0, most_top_logprobs);
  if (top.value_or(0) > 0 && !wanted) {
    throw RequestError("top_logprobs requires logprobs, but logprobs is not true", "top_logprobs");
  }
  if (wanted) request.logprobs = top.value_or(0);
}

OllamaRequest read_ollama(OllamaRoute route, const ChatJson& object, const RequestDefaults& defaults,
                          const TextModel& model) {
  BodyFields body(object);
  // Not in the braces of `request`: if this throws, GCC 12 destroys what the braces have built twice.
  std::string name = body.text("model").value_or("");
  OllamaRequest request{.text = request_with(defaults), .model = std::move(name)};
  request.text.chat = true;
  if (request.model.empty()) fail_without_model();
  request.stream = body.flag("stream").value_or(true);
  if (const ChatJson* const options = body.object("options"))
    read_options(*options, model.llm().positions, request.text);
  read_format(body, request.text);
  read_think(body, request.text);
  read_logprobs(body, request.text);
  route == OllamaRoute::chat ? read_chat(body, request) : read_prompt(body, request, model.tokenizer());
  // Models stay until others need the memory, and what is too long is an error.
  body.take_hints({"keep_alive", "truncate", "shift"}, request.text.hints);
  body.require("_debug_render_only", false);  // of every request of Ollama's own client
  body.reject_the_rest();
  if (!model.has_name(ollama_model_name(object))) request.model = model.names().front();
  return request;
}

// A line with a piece of text.
ChatJson line_of(OllamaRoute route, const std::string& model, std::string_view text) {
  ChatJson line{{"model", model}, {"created_at", ollama_time(std::chrono::system_clock::now())}};
  if (route == OllamaRoute::generate) {
    line["response"] = text;
  } else {
    line["message"] = {{"role", "assistant"}, {"content", text}};
  }
  return line;
}

// The answer to one request, line by line.
class OllamaAnswer {
 public:
  OllamaAnswer(OllamaRoute route, const TextModel& model, OllamaRequest request, std::shared_ptr<HttpAnswer> answer)
      : route_(route), model_(model), request_(std::move(request)), answer_(std::move(answer)) {}

  static void start(const std::shared_ptr<OllamaAnswer>& own, const SubmitTexts& submit, const TakeSeeds& take_seeds) {
    if (own->request_.only_loads) {
      return own->answer_->send(200, json_type, json_line(own->line("", {{"done", true}, {"done_reason", "load"}})));
    }
    own->task_ = std::make_shared<const TextTask>(
        std::move(own->model_.tasks(own->request_.text, take_seeds(1), std::time(nullptr)).front()));
    own->reader_.emplace(own->model_, own->task_);
    submit({job_of(own, own->task_, *own->answer_)});
  }

  void on_text(std::string_view text, const std::vector<TokenScore>& scores) {
    if (request_.stream) write_piece(reader_->push(text, scores));
  }

  void on_end(const Generated& generated, const std::exception_ptr& error) {
    if (answer_->gone()) return;
    if (error) return fail(request_error_of(error));
    const ChatJson end = end_fields(generated);
    AnswerReader::Piece rest = reader_->finish(generated);
    // The last event then is a call whose arguments are no object, which Ollama's have to be.
    if (reader_->has_cut_call()) rest.events.pop_back();
    if (request_.stream) {
      write_piece(rest);
      ChatJson last = line("", end);
      if (rest.events.empty()) add_scores(last, rest.scores);
      write(last);
      return answer_->finish();
    }
    Message message{.role = Role::assistant};
    std::size_t next_call = 1;
    for (AnswerEvent& event : rest.events) add_event(event, message, next_call);
    ChatJson whole = line(message.content, end, message.reasoning.value_or(""), calls_json(message.tool_calls));
    add_scores(whole, rest.scores);
    answer_->send(200, json_type, json_line(whole));
  }

 private:
  // A line with a piece of text and further fields.
  ChatJson line(std::string_view text, const ChatJson& fields, const std::string& thought = "",
                const ChatJson& calls = {}) const {
    ChatJson line = line_of(route_, request_.model, text);
    ChatJson& message = route_ == OllamaRoute::generate ? line : line["message"];
    if (!thought.empty()) message["thinking"] = thought;
    if (!calls.is_null()) message["tool_calls"] = calls;
    line.update(fields);
    return line;
  }

  // The ids differ between answers, too: their results name them in the same conversation.
  ChatJson calls_json(const std::vector<ToolCall>& calls) {
    ChatJson list = ChatJson::array();
    for (const ToolCall& call : calls) {
      list.push_back({{"id", unique_id("call_")},
                      {"function",
                       {{"index", calls_++},
                        {"name", call.name},
                        {"arguments", parse_chat_json(call.arguments, "arguments", LargeIntegers::rounded)}}}});
    }
    return list.empty() ? ChatJson(nullptr) : list;
  }

  void write(const ChatJson& line) {
    if (!std::exchange(streaming_, true)) answer_->start(lines_type);
    answer_->write(json_line(line) + "\n");
  }

  // Adds the log-probabilities of tokens to a line, if they are requested.
  void add_scores(ChatJson& line, std::span<const TokenScore> scores) const {
    if (!request_.text.logprobs || scores.empty()) return;
    line["logprobs"] = reader_->logprobs(scores)["content"];
  }

  // The scores are in the line of the first event.
  void write_piece(const AnswerReader::Piece& piece) {
    std::span<const TokenScore> scores = piece.scores;
    for (const AnswerEvent& event : piece.events) {
      const bool is_call = event.kind == AnswerEvent::Kind::tool_call;
      const bool is_thought = event.kind == AnswerEvent::Kind::thought;
      ChatJson next = line(is_call || is_thought ? "" : event.text, {{"done", false}}, is_thought ? event.text : "",
                           is_call ? calls_json({event.call}) : ChatJson());
      add_scores(next, std::exchange(scores, {}));
      write(next);
    }
  }

  void fail(const RequestError& error) {
    if (!streaming_) return send_error(*answer_, error, ollama_error_body);
    answer_->write(ollama_error_body(error) + "\n");
    answer_->finish();
  }

  ChatJson end_fields(const Generated& generated) const {
    const auto nanoseconds = [](double seconds) { return static_cast<std::int64_t>(1e9 * seconds); };
    return {{"done", true},
            {"done_reason", name_of(generated.finish_reason)},
            {"total_duration", nanoseconds(std::chrono::duration<double>(Clock::now() - began_).count())},
            {"load_duration", 0},
            {"prompt_eval_count", task_->prompt.size()},
            {"prompt_eval_duration", nanoseconds(generated.prompt_seconds)},
            {"eval_count", generated.tokens.size()},
            {"eval_duration", nanoseconds(generated.decode_seconds)}};
  }

  const OllamaRoute route_;
  const TextModel& model_;
  const OllamaRequest request_;
  const std::shared_ptr<HttpAnswer> answer_;
  const Clock::time_point began_ = Clock::now();
  std::shared_ptr<const TextTask> task_;
  std::optional<AnswerReader> reader_;
  bool streaming_ = false;
  std::size_t calls_ = 0;  // so far
};

}  // namespace

void start_ollama(OllamaRoute route, const TextModel& model, const SubmitTexts& submit, const ChatJson& body,
                  const RequestDefaults& defaults, const TakeSeeds& take_seeds, const TakeHints& take_hints,
                  std::shared_ptr<HttpAnswer> answer) {
  OllamaRequest request = read_ollama(route, body, defaults, model);
  take_hints(request.text.hints);
  OllamaAnswer::start(std::make_shared<OllamaAnswer>(route, model, std::move(request), std::move(answer)), submit,
                      take_seeds);
}

bool asks_to_unload(OllamaRoute route, const ChatJson& body) {
  const auto keep = body.find("keep_alive"), text = body.find(route == OllamaRoute::chat ? "messages" : "prompt");
  if (keep == body.end() || (*keep != 0 && *keep != "0" && *keep != "0s" && *keep != "0m")) return false;
  return text == body.end() || text->empty() || *text == "";
}

ChatJson ollama_unloaded(OllamaRoute route, const ChatJson& body) {
  ChatJson line = line_of(route, ollama_model_name(body), "");
  line.update({{"done", true}, {"done_reason", "unload"}});
  return line;
}

std::string ollama_error_body(const RequestError& error) {
  return json_line(ChatJson{{"error", error.what()}});
}

}  // namespace minimind
