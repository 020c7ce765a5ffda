#include "tools/serve/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/text/utf8.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "tools/serve/completion.h"
#include "tools/serve/metrics.h"
#include "tools/serve/page.h"
#include "tools/serve/rollout.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

constexpr std::string_view model_path_prefix = "/v1/models/";

// Counts the answer that it passes on.
class CountedAnswer : public HttpAnswer {
 public:
  CountedAnswer(std::shared_ptr<HttpAnswer> answer, AnswerCounts& counts, std::string route)
      : answer_(std::move(answer)), counts_(counts), route_(std::move(route)) {}

  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    counts_.add(route_, status);
    answer_->send(status, content_type, std::move(body), extra);
  }
  void start(std::string_view content_type) override {
    counts_.add(route_, 200);
    answer_->start(content_type);
  }
  void write(std::string piece) override { answer_->write(std::move(piece)); }
  void finish() override { answer_->finish(); }
  const std::atomic<bool>& gone() const override { return answer_->gone(); }

 private:
  const std::shared_ptr<HttpAnswer> answer_;
  AnswerCounts& counts_;
  const std::string route_;
};

// A page of another origin cannot send this type without asking first. A request without a body needs none.
bool has_json(const HttpRequest& request) {
  if (request.body.empty()) return true;
  const auto field = request.headers.find("content-type");
  if (field == request.headers.end()) return false;
  std::string type = field->second.substr(0, field->second.find_first_of("; \t"));
  std::ranges::transform(type, type.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type == json_type;
}

// Throws RequestError if the body is compressed.
void check_coding(const HttpRequest& request) {
  const auto coding = request.headers.find("content-encoding");
  if (coding == request.headers.end() || coding->second == "identity") return;
  throw RequestError(
      fmt::format("the content encoding is {}, expected a body that is not compressed", quote(coding->second)), "",
      "unsupported_media_type");
}

ChatJson read_body(const HttpRequest& request) {
  if (const auto at = first_not_utf8(request.body)) {
    throw RequestError(fmt::format("the body is not UTF-8 at byte {}", *at), "", "invalid_json");
  }
  ChatJson body;
  try {
    body = parse_chat_json(request.body, "the body");
  } catch (const LargeInteger& error) {
    throw RequestError(error.what(), error.field());
  } catch (const Error& error) {
    throw RequestError(error.what(), "", "invalid_json");
  }
  if (!body.is_object()) {
    throw RequestError(fmt::format("the body is {}, expected a JSON object", kind_of(body)), "", "invalid_json");
  }
  return body;
}

// The values of fields that a request leaves out, for the page.
ChatJson defaults_json(const RequestDefaults& defaults) {
  const SamplingOptions& sampling = defaults.sampling;
  return {{"temperature", sampling.temperature},
          {"top_p", sampling.top_p},
          {"top_k", sampling.top_k},
          {"min_p", sampling.min_p},
          {"typical_p", sampling.typical_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"dry_multiplier", sampling.dry.multiplier},
          {"max_tokens", defaults.max_tokens}};
}

// Answers OPTIONS.
void send_methods(const std::string& methods, HttpAnswer& answer) {
  answer.send(204, "", "", {{"Allow", methods + ", OPTIONS"}});
}

// Answers a request by another method than that of its route.
void reject_method(const HttpRequest& request, const std::string& expected, HttpAnswer& answer) {
  const std::string methods = expected == "GET" ? "GET, HEAD" : expected;
  if (request.method == "OPTIONS") return send_methods(methods, answer);
  const RequestError error(
      fmt::format("the method is {}, expected {} for {}", quote(request.method), expected, request.path), "",
      "method_not_allowed");
  answer.send(error.status(), json_type, error_body(error), {{"Allow", methods + ", OPTIONS"}});
}

void send_json(HttpAnswer& answer, const ChatJson& json) {
  answer.send(200, json_type, json_line(json));
}

}  // namespace

void AnswerCounts::add(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++counts_[{route, status}];
}

AnswerCounts::Counts AnswerCounts::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Api::Api(ModelShelf& models, ApiOptions options)
    : models_(models), options_(std::move(options)), started_(std::time(nullptr)), tasks_(options_.requests) {}

const std::map<std::string, Api::Route, std::less<>>& Api::routes() {
  static const std::map<std::string, Route, std::less<>> routes{
      {"/v1/chat/completions", {"POST", &Api::chat_completions}},
      {"/v1/completions", {"POST", &Api::completions}},
      {"/v1/models", {"GET", &Api::list_models}},
      {"/v1/models/{model}", {"GET", &Api::one_model}},
      {"/tokenize", {"POST", &Api::tokenize}},
      {"/detokenize", {"POST", &Api::detokenize}},
      {"/apply-template", {"POST", &Api::apply_template}},
      {"/generate", {"POST", &Api::generate}},
      {"/update_weights_from_disk", {"POST", &Api::update_weights}},
      {"/flush_cache", {"POST", &Api::flush_cache}},
      {"/api/chat", {"POST", &Api::ollama_chat}},
      {"/api/generate", {"POST", &Api::ollama_generate}},
      {"/api/tags", {"GET", &Api::ollama_models}},
      {"/api/version", {"GET", &Api::ollama_version, true}},
      {"/health", {"GET", &Api::health, true}},
      {"/metrics", {"GET", &Api::metrics, true}},
  };
  return routes;
}

void Api::handle(HttpRequest request, Answer answer) {
  if (answer_page(request, *answer)) return answers_.add("page", 200);
  const bool names_model = request.path.starts_with(model_path_prefix);
  const auto found = routes().find(names_model ? "/v1/models/{model}" : request.path);
  if (found == routes().end()) {
    CountedAnswer unrouted(answer, answers_, "other");
    if (find_page_file(request.path)) return reject_method(request, "GET", unrouted);
    if (request.method == "OPTIONS" && request.path == "*") return send_methods("GET, HEAD, POST", unrouted);
    return send_error(unrouted,
                      RequestError(fmt::format("there is no route {}", quote(request.path)), "", "not_found"));
  }
  auto counted = std::make_shared<CountedAnswer>(std::move(answer), answers_, found->first);
  handle_route(found->second, std::move(request), std::move(counted));
}

void Api::handle_route(const Route& route, HttpRequest request, Answer answer) {
  if (request.method != route.method) return reject_method(request, route.method, *answer);
  if (request.method == "POST" && !has_json(request)) {
    return send_error(*answer, RequestError("the content type is not application/json, expected it for a body of JSON",
                                            "", "unsupported_media_type"));
  }
  if (route.quick) return run(route, request, answer);
  const bool posted = tasks_.post([this, &route, request = std::move(request), answer] {
    if (!answer->gone()) run(route, request, answer);
  });
  if (!posted) send_error(*answer, RequestError("too many requests are waiting; try again later", "", "queue_full"));
}

void Api::run(const Route& route, const HttpRequest& request, const Answer& answer) {
  try {
    check_coding(request);
    (this->*route.handle)(request, answer);
  } catch (const ClientGone&) {
    return;
  } catch (...) {
    send_error(*answer, request_error_of(std::current_exception()));
  }
}

void Api::drain() {
  draining_ = true;
  models_.drain();
}

// A model of another type than a string is the reader's to reject.
ServedModel& Api::model_of(const ChatJson& body, const Answer& answer) {
  const auto name = body.find("model");
  if (name != body.end() && *name == "") {
    throw RequestError("model is \"\", expected one of those that /v1/models lists, or no model", "model",
                       "model_not_found");
  }
  return models_.get(name != body.end() && name->is_string() ? name->get<std::string>() : "", answer->gone());
}

Request Api::read(const ChatJson& body, bool chat) const {
  RequestDefaults defaults = options_.defaults;
  const auto name = body.find("model");  // is known
  if (name != body.end() && name->is_string()) defaults.model_names = {name->get<std::string>()};
  return read_request(body, chat, defaults);
}

void Api::complete(const HttpRequest& http, const Answer& answer, bool chat) {
  const ChatJson body = read_body(http);
  ServedModel& served = model_of(body, answer);
  Request request = read(body, chat);
  const std::size_t texts = request.best_of * std::max<std::size_t>(request.prompts.size(), 1);
  const std::uint64_t seed = next_seed(texts);
  Completion::start(served.model, served.engine, std::move(request), seed, answer);
}

std::uint64_t Api::next_seed(std::size_t texts) {
  if (!options_.seed) return std::random_device{}();
  const std::uint64_t seed = *options_.seed + seeds_;
  seeds_ += texts;
  return seed;
}

void Api::chat_completions(const HttpRequest& request, const Answer& answer) {
  complete(request, answer, true);
}

void Api::completions(const HttpRequest& request, const Answer& answer) {
  complete(request, answer, false);
}

ChatJson Api::model_json(const ModelShelf::Listed& model) const {
  ChatJson json{{"id", model.name},
                {"object", "model"},
                {"created", model.created > 0 ? model.created : started_},
                {"owned_by", "minimind"}};
  if (model.context > 0) json["max_model_len"] = model.context;
  ChatJson facts = ChatJson::object();
  if (model.context > 0) facts["context_length"] = model.context;
  facts["loras"] = model.loras;
  facts["defaults"] = defaults_json(options_.defaults);
  json["minimind"] = std::move(facts);
  return json;
}

void Api::list_models(const HttpRequest&, const Answer& answer) {
  ChatJson list = ChatJson::array();
  for (const ModelShelf::Listed& model : models_.list()) list.push_back(model_json(model));
  send_json(*answer, {{"object", "list"}, {"data", std::move(list)}});
}

void Api::one_model(const HttpRequest& request, const Answer& answer) {
  const std::string name = request.path.substr(model_path_prefix.size());
  for (const ModelShelf::Listed& model : models_.list()) {
    if (model.name == name) return send_json(*answer, model_json(model));
  }
  throw RequestError(fmt::format("model is {}, expected one of those that /v1/models lists", quote(name)), "model",
                     "model_not_found");
}

// As llama.cpp's server has it.
void Api::tokenize(const HttpRequest& request, const Answer& answer) {
  const ChatJson body = read_body(request);
  const TextModel& model = model_of(body, answer).model;
  BodyFields fields(body);
  fields.text("model");
  const auto content = fields.text("content");
  if (!content) throw RequestError("content is missing, expected a string", "content", "missing_required_parameter");
  const bool special = fields.flag("add_special").value_or(false);
  const bool pieces = fields.flag("with_pieces").value_or(false);
  fields.reject_the_rest();
  const Tokenizer& tokenizer = model.tokenizer();
  ChatJson tokens = ChatJson::array();
  for (const std::int32_t id : special ? tokenizer.encode_with_special(*content) : tokenizer.encode(*content)) {
    if (!pieces) {
      tokens.push_back(id);
      continue;
    }
    const std::string_view bytes = tokenizer.token_bytes(id);
    ChatJson piece = ChatJson(std::string(bytes));
    if (!is_utf8(bytes)) {
      piece = ChatJson::array();
      for (const char c : bytes) piece.push_back(static_cast<unsigned char>(c));
    }
    tokens.push_back({{"id", id}, {"piece", std::move(piece)}});
  }
  send_json(*answer, {{"tokens", std::move(tokens)}});
}

void Api::detokenize(const HttpRequest& request, const Answer& answer) {
  const ChatJson body = read_body(request);
  const Tokenizer& tokenizer = model_of(body, answer).model.tokenizer();
  BodyFields fields(body);
  fields.text("model");
  const ChatJson* const tokens = fields.find("tokens");
  if (!tokens) throw RequestError("tokens is missing, expected a list of ids", "tokens", "missing_required_parameter");
  const auto is_known = [&](const ChatJson& id) {
    return id.is_number_unsigned() && id.get<std::uint64_t>() < tokenizer.vocab_size() &&
           tokenizer.has(id.get<std::int32_t>());
  };
  if (!tokens->is_array() || !std::ranges::all_of(*tokens, is_known)) {
    fields.fail("tokens", "a list of ids in the vocabulary");
  }
  fields.reject_the_rest();
  const auto ids = tokens->get<std::vector<std::int32_t>>();
  send_json(*answer, {{"content", tokenizer.decode(ids, false)}});
}

// Takes the body of a chat completion.
void Api::apply_template(const HttpRequest& request, const Answer& answer) {
  const ChatJson body = read_body(request);
  const TextModel& model = model_of(body, answer).model;
  const Request chat = read(body, true);
  try {
    send_json(*answer, {{"prompt", model.chat_prompt(chat, std::time(nullptr))}});
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(error.what(), "messages");
  }
}

void Api::generate(const HttpRequest& request, const Answer& answer) {
  ServedModel& served = models_.only();
  start_rollout(served.model, served.engine, read_body(request), next_seed(1), answer);
}

// Throws RequestError if the client may not name the path.
void Api::check_weights_path(const std::string& path) const {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);  // without links that lead out of the folder
  const auto contains = [&](const std::string& folder) {
    const fs::path inside = real.lexically_relative(fs::weakly_canonical(folder, failed));
    return !inside.empty() && *inside.begin() != "..";
  };
  if (std::ranges::any_of(options_.weights_folders, contains)) return;
  if (options_.weights_folders.empty() && options_.any_weights) return;
  throw RequestError(fmt::format("model_path is {}, expected a path in {}", quote(path),
                                 options_.weights_folders.empty()
                                     ? "the folder of --weights-from, which the server was started without"
                                     : "a folder of --weights-from"),
                     "model_path", "permission_denied");
}

// Running texts end with the old weights, which stay if the file is bad. The others start with the new ones.
void Api::update_weights(const HttpRequest& request, const Answer& answer) {
  const ChatJson body = read_body(request);
  BodyFields fields(body);
  const auto path = fields.text("model_path");
  if (path.value_or("").empty()) {
    throw RequestError("model_path is missing or empty, expected a checkpoint", "model_path",
                       "missing_required_parameter");
  }
  for (const char* const name : {"load_format", "weight_version"}) fields.text(name);
  for (const char* const name : {"abort_all_requests", "is_async"}) fields.require(name, false);
  for (const char* const name : {"flush_cache", "torch_empty_cache", "recapture_cuda_graph"}) fields.flag(name);
  fields.reject_the_rest();
  check_weights_path(*path);
  ServedModel& served = models_.only();
  try {
    Model model = served.model.load_weights_of(*path);
    served.engine.run_between_steps(
        [&](ContextPool& pool) {
          served.model.replace_weights(std::move(model));
          pool.clear();
        },
        true);
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(error.what(), "model_path");
  }
  send_json(*answer, {{"success", true}, {"message", "the weights are those of " + *path}, {"num_paused_requests", 0}});
}

void Api::flush_cache(const HttpRequest& request, const Answer& answer) {
  if (!request.body.empty()) BodyFields(read_body(request)).reject_the_rest();
  models_.only().engine.run_between_steps([](ContextPool& pool) { pool.clear(); }, false);
  send_json(*answer, {{"success", true}, {"message", "the cache is empty"}});
}

void Api::ollama(const HttpRequest& request, const Answer& answer, OllamaRoute route) {
  try {
    const ChatJson body = read_body(request);
    ServedModel& served = models_.get(ollama_model_name(body), answer->gone());
    start_ollama(route, served.model, served.engine, body, options_.defaults, next_seed(1), answer);
  } catch (const ClientGone&) {
    throw;
  } catch (...) {
    const RequestError error = request_error_of(std::current_exception());
    answer->send(error.status(), json_type, ollama_error_body(error), {});
  }
}

void Api::ollama_chat(const HttpRequest& request, const Answer& answer) {
  ollama(request, answer, OllamaRoute::chat);
}

void Api::ollama_generate(const HttpRequest& request, const Answer& answer) {
  ollama(request, answer, OllamaRoute::generate);
}

void Api::ollama_models(const HttpRequest&, const Answer& answer) {
  send_json(*answer, ollama_tags(models_.list(), started_));
}

void Api::ollama_version(const HttpRequest&, const Answer& answer) {
  send_json(*answer, {{"version", MINIMIND_VERSION}});
}

void Api::health(const HttpRequest&, const Answer& answer) {
  if (draining_) return answer->send(503, json_type, R"({"status": "shutting down"})", {{"Retry-After", "1"}});
  answer->send(200, json_type, R"({"status": "ok"})");
}

void Api::metrics(const HttpRequest&, const Answer& answer) {
  answer->send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(answers_.counts(), models_.counts()));
}

}  // namespace minimind
