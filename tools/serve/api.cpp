#include "tools/serve/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/text/utf8.h"
#include "tools/openai/answer_body.h"
#include "tools/serve/absent_routes.h"
#include "tools/serve/inside.h"
#include "tools/serve/metrics.h"
#include "tools/serve/ollama_models.h"
#include "tools/serve/page.h"
#include "tools/serve/request_body.h"
#include "tools/serve/response_items.h"
#include "tools/serve/responses.h"
#include "tools/serve/rollout.h"
#include "tools/serve/text_generation.h"
#include "weights/base/cancel.h"
#include "weights/base/text.h"

namespace minimind {

// A request whose body is read.
struct ApiRequest {
  std::string method, path, query;
  std::string client{};  // HttpRequest::client
  ChatJson body;
  mutable std::optional<std::uint64_t> seed{};  // that its texts were given: it is prepared again if it takes long
};

namespace {

constexpr std::string_view model_path_prefix = "/v1/models/", response_path_prefix = "/v1/responses/";

// Clients refuse an Ollama that is older than what they need, such as VS Code's Copilot Chat one below 0.6.4: this is
// the version of Ollama whose API the routes speak, whatever that of this program.
constexpr std::string_view ollama_api_version = "0.12.6";

// Of a model and a request that outlive it. Throws RequestError if the model takes no request of the client now.
SubmitTexts submit_to(ServedModel& served, const ApiRequest& request) {
  served.engine.check_room(request.client);
  return [&served, &request](std::vector<TextJob> jobs) { served.engine.submit(std::move(jobs), request.client); };
}

// The id in the path of one response.
std::string response_id_of(const std::string& path) {
  return path.substr(response_path_prefix.size(),
                     path.find('/', response_path_prefix.size()) - response_path_prefix.size());
}

// A request for more texts delays the others: each takes some microseconds.
constexpr std::size_t most_brief_texts = 64;

// A request that is being prepared when the server stops has so long to become a running text.
constexpr std::chrono::milliseconds longest_preparation(15);

RequestError being_shut_down() {
  return {"the server is shutting down", "", "unavailable"};
}

// Counts the answer that it passes on.
class CountedAnswer : public HttpAnswer {
 public:
  CountedAnswer(std::shared_ptr<HttpAnswer> answer, std::shared_ptr<AnswerCounts> counts, std::string route)
      : answer_(std::move(answer)), counts_(std::move(counts)), route_(std::move(route)) {}

  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    count(status);
    answer_->send(status, content_type, std::move(body), extra);
  }
  void start(std::string_view content_type) override {
    count(200);
    answer_->start(content_type);
  }
  void write(std::string piece) override { answer_->write(std::move(piece)); }
  void finish() override { answer_->finish(); }
  const std::atomic<bool>& gone() const override { return answer_->gone(); }
  const std::atomic<bool>& behind() const override { return answer_->behind(); }

 private:
  // Only the first answer is sent.
  void count(int status) {
    if (!counted_.exchange(true)) counts_->add(route_, status);
  }

  const std::shared_ptr<HttpAnswer> answer_;
  const std::shared_ptr<AnswerCounts> counts_;
  const std::string route_;
  std::atomic<bool> counted_ = false;
};

// Answers OPTIONS.
void send_methods(const std::string& methods, HttpAnswer& answer) {
  answer.send(204, "", "", {{"Allow", methods + ", OPTIONS"}});
}

// Answers a request by another method than that of its route.
void reject_method(const HttpRequest& request, const std::string& expected, ErrorBody errors, HttpAnswer& answer) {
  const std::string methods = expected.starts_with("GET") ? "GET, HEAD" + expected.substr(3) : expected;
  if (request.method == "OPTIONS") return send_methods(methods, answer);
  const RequestError error(
      fmt::format("the method is {}, expected {} for {}", quote(request.method), expected, request.path), "",
      "method_not_allowed");
  answer.send(error.status(), json_type, errors(error), {{"Allow", methods + ", OPTIONS"}});
}

MarkedText prompt_of(const TextModel& model, const Request& chat) {
  return about("messages", [&] { return model.chat_prompt(chat, std::time(nullptr)); });
}

// Removes what the clients of Groq, Llama Stack and Azure put before OpenAI's routes; Azure's have no /v1, and some
// the name of the model, which the body has, too, or only "models". Clients such as Together's add /v1 to an address
// that may end with it.
void remove_openai(std::string& path) {
  constexpr std::string_view azure = "/openai/", deployments = "/openai/deployments/";
  const std::size_t end = path.starts_with(deployments) ? path.find('/', deployments.size()) : azure.size() - 1;
  if (path.starts_with(azure) && !path.starts_with("/openai/v1/") && end != std::string::npos) {
    return void(path.replace(0, end, "/v1"));
  }
  if (path == "/models/chat/completions") path.replace(0, std::string_view("/models").size(), "/v1");
  for (const std::string before : {"/v1/openai", "/openai", "/v1"}) {
    if (path.starts_with(before + "/v1/")) path.erase(0, before.size());
  }
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
    : models_(models),
      options_(std::move(options)),
      weights_folders_(options_.weights_folders),
      started_(std::time(nullptr)),
      long_tasks_(options_.requests, TaskThread::Priority::background),
      brief_tasks_(options_.requests) {
  models_.on_outdated([this] { long_tasks_.post([this] { models_.drop_outdated(); }); });
}

Api::~Api() {
  models_.on_outdated({});
  long_tasks_.stop();
  brief_tasks_.stop();
}

const Api::Routes& Api::routes() {
  // A hundred of them must not delay a first token by 100 ms: a template takes 0.1 ms per KB on a slow machine.
  const auto of_no_text = [](auto handle) {
    return Route{.method = "POST", .handle = handle, .most_brief_bytes = 8 << 10};
  };
  static const Routes routes{
      {"/v1/chat/completions", {"POST", &Api::chat_completions}},
      {"/v1/completions", {"POST", &Api::completions}},
      {"/v1/responses", {"POST", &Api::responses}},
      {"/v1/responses/input_tokens", of_no_text(&Api::count_response_tokens)},
      {"/v1/responses/{response}", {"GET", &Api::one_response, false, false, Dialect::openai, "DELETE"}},
      {"/v1/responses/{response}/input_items", {"GET", &Api::response_input}},
      {"/v1/responses/{response}/cancel", {"POST", &Api::cancel_response, false, true}},
      {"/v1/models", {"GET", &Api::list_models}},
      {"/v1/models/{model}", {"GET", &Api::one_model}},
      {"/model_info", {"GET", &Api::sglang_info}},
      {"/get_model_info", {"GET", &Api::sglang_info}},
      {"/server_info", {"GET", &Api::sglang_info}},
      {"/get_server_info", {"GET", &Api::sglang_info}},
      {"/info", {"GET", &Api::text_generation_info, false, false, Dialect::text_generation}},
      {"/tokenizer_info", {"GET", &Api::tokenizer_info}},
      {"/tokenize", of_no_text(&Api::tokenize)},
      {"/detokenize", of_no_text(&Api::detokenize)},
      {"/v1/tokenize", of_no_text(&Api::tokenize)},
      {"/v1/detokenize", of_no_text(&Api::detokenize)},
      {"/apply-template", of_no_text(&Api::apply_template)},
      {"/v1/inside", {"POST", &Api::inside}},
      {"/generate", {"POST", &Api::generate}},
      {"/generate_stream", {"POST", &Api::text_generation, false, false, Dialect::text_generation}},
      {"/", {"GET", &Api::text_generation, false, false, Dialect::text_generation, "POST"}},  // GET has got the page
      {"/update_weights_from_disk", {"POST", &Api::update_weights}},
      {"/flush_cache", {"POST", &Api::flush_cache, false, true, Dialect::openai, "GET"}},
      {"/reset_prefix_cache", {"POST", &Api::flush_cache, false, true}},
      {"/api/chat", {"POST", &Api::ollama_chat, false, false, Dialect::ollama}},
      {"/api/generate", {"POST", &Api::ollama_generate, false, false, Dialect::ollama}},
      {"/api/tags", {"GET", &Api::ollama_models, false, false, Dialect::ollama}},
      {"/api/ps", {"GET", &Api::ollama_running_models, false, false, Dialect::ollama}},
      {"/api/show", {"POST", &Api::ollama_show_model, false, false, Dialect::ollama}},
      {"/api/version", {"GET", &Api::ollama_version, true, false, Dialect::ollama}},
      {"/version", {"GET", &Api::version, true}},
      {"/health", {"GET", &Api::health, true}},
      {"/v1/health", {"GET", &Api::health, true}},
      {"/health_generate", {"GET", &Api::health, true}},
      {"/ping", {"GET", &Api::health, true}},
      {"/ready", {"GET", &Api::ready, true}},
      {"/metrics", {"GET", &Api::metrics, true}},
  };
  return routes;
}

// Returns the key of the path in routes().
std::string Api::route_name(const std::string& path) {
  if (path.starts_with(model_path_prefix)) return "/v1/models/{model}";
  if (!path.starts_with(std::string(response_path_prefix) + "resp_")) return path;
  return "/v1/responses/{response}" + path.substr(response_path_prefix.size() + response_id_of(path).size());
}

// Returns the route of a path, whose name the path becomes, or the end of routes(). Clients are given the address with
// or without /v1, and some end every path with a slash.
Api::Routes::const_iterator Api::find_route(std::string& path) {
  const std::string bare = path.size() > 2 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  for (const std::string& full : {bare, "/v1" + bare}) {
    const auto found = routes().find(route_name(full));
    if (found == routes().end()) continue;
    path = full;
    return found;
  }
  return routes().end();
}

// What a page of another origin asks for by GET was let through, because that changes nothing.
bool Api::Route::takes(const HttpRequest& request) const {
  if (request.method == method) return true;
  return request.method == other_method && (other_method != "GET" || !is_from_page(request));
}

class Api::Work {
 public:
  Work(Api& with_api, const Route& with_route, HttpRequest with_http, Answer with_answer)
      : route(with_route),
        http(std::move(with_http)),
        answer(std::move(with_answer)),
        api_(with_api),
        bytes_(http.body.size()) {
    const std::lock_guard lock(api_.mutex_);
    place_ = api_.preparing_.insert(api_.preparing_.end(), this);
    api_.waiting_bytes_ += bytes_;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    const std::lock_guard lock(api_.mutex_);
    api_.preparing_.erase(place_);
    api_.waiting_bytes_ -= bytes_;
    if (api_.preparing_.empty()) api_.prepared_.notify_all();
  }

  // Whether there is room for the body of the request next to those that wait, or it is small, or no other waits.
  bool fits() const {
    const std::lock_guard lock(api_.mutex_);
    const std::size_t most = api_.options_.waiting_bytes, small = most / 8192;
    return bytes_ <= small || api_.waiting_bytes_ <= most || api_.preparing_.size() == 1;
  }

  const Route& route;
  HttpRequest http;  // until it is read
  const Answer answer;
  ApiRequest request{};
  bool is_read = false;
  std::atomic<bool> has_begun = false;

 private:
  Api& api_;
  const std::size_t bytes_;
  std::list<Work*>::iterator place_;
};

void Api::handle(HttpRequest request, Answer answer) {
  if (answer_page(request, *answer)) return answers_->add("page", 200);
  remove_openai(request.path);
  const auto found = find_route(request.path);
  if (found == routes().end()) {
    CountedAnswer unrouted(answer, answers_, "other");
    if (find_page_file(request.path)) return reject_method(request, "GET", error_body, unrouted);
    if (request.method == "OPTIONS" && request.path == "*") return send_methods("GET, HEAD, POST, DELETE", unrouted);
    return send_error(unrouted, RequestError(no_such_route(request.path), "", "not_found"),
                      errors_of(is_ollamas(request.path) ? Dialect::ollama : Dialect::openai));
  }
  auto counted = std::make_shared<CountedAnswer>(std::move(answer), answers_, found->first);
  handle_route(found->second, std::move(request), std::move(counted));
}

void Api::handle_route(const Route& route, HttpRequest request, Answer answer) {
  if (!route.takes(request)) {
    return reject_method(request, route.methods(), route.errors(), *answer);
  }
  const bool is_typed = has_json_type(request) || (route.dialect == Dialect::ollama && !is_from_page(request));
  if (request.method == "POST" && !is_typed) {
    return send_error(*answer,
                      RequestError("the content type is not application/json, expected it for a body of JSON", "",
                                   "unsupported_media_type"),
                      route.errors());
  }
  if (route.quick) {
    return guarded(*answer, route.errors(), [&] {
      (this->*route.handle)({.method = request.method, .path = request.path, .query = request.query, .body = {}},
                            answer);
    });
  }
  if (draining_) return send_error(*answer, being_shut_down(), route.errors());
  const auto work = std::make_shared<Work>(*this, route, std::move(request), answer);
  // Large bodies wait for each other, also because what is parsed takes several times the memory of its text.
  const std::size_t bytes = work->http.body.size();
  const bool is_posted = work->fits() && (bytes > route.most_brief_bytes ? post_long(work, bytes) : post(work));
  if (!is_posted) send_error(*answer, cannot_wait(), route.errors());
}

// Why a request is not prepared.
RequestError Api::cannot_wait() const {
  if (draining_) return being_shut_down();
  return {"too many requests are waiting; try again later", "", "queue_full"};
}

// Returns false if too many requests wait. Instead of this one, a larger one may be rejected that waits.
bool Api::post(const std::shared_ptr<Work>& work) {
  return brief_tasks_.post([this, work] { prepare(work, false); }, work->http.body.size(),
                           [this, work] { send_error(*work->answer, cannot_wait(), work->route.errors()); });
}

// The same, for the other thread.
bool Api::post_long(const std::shared_ptr<Work>& work, std::size_t cost) {
  work->has_begun = false;
  return long_tasks_.post([this, work] { prepare(work, true); }, cost);
}

void Api::read(Work& work) {
  work.request = {.method = work.http.method,
                  .path = work.http.path,
                  .query = work.http.query,
                  .client = work.http.client,
                  .body = {}};
  const bool expects_body = work.http.method == "POST" && !(work.http.body.empty() && work.route.may_be_empty);
  if (expects_body) work.request.body = read_request_body(work.http, options_.text);
  work.http = {};
  work.is_read = true;
}

// Runs the handler of the request. What turns out to take long is begun again on the other thread.
void Api::prepare(const std::shared_ptr<Work>& work, bool is_long) {
  work->has_begun = true;
  guarded(*work->answer, work->route.errors(), [&] {
    check_cancelled();
    if (!work->is_read) read(*work);
    std::optional<BriefWork> brief;
    if (!is_long) brief.emplace();
    try {
      (this->*work->route.handle)(work->request, work->answer);
    } catch (const LongWork&) {
      if (!post_long(work, options_.text)) throw cannot_wait();  // how long is not known: longer than most
    }
  });
  models_.drop_outdated();  // the request held its model, whose texts may have ended meanwhile
}

void Api::guarded(HttpAnswer& answer, ErrorBody errors, const std::function<void()>& action) {
  const Cancellation by_server(draining_), by_client(answer.gone());
  try {
    action();
  } catch (const Cancelled&) {
    if (!answer.gone()) send_error(answer, being_shut_down(), errors);
  } catch (...) {
    send_error(answer, request_error_of(std::current_exception()), errors);
  }
}

void Api::drain() {
  draining_ = true;
  models_.drain();
  reject_work(false);
  long_tasks_.stop();
  brief_tasks_.stop();
  {
    std::unique_lock lock(mutex_);
    prepared_.wait_for(lock, longest_preparation, [this] { return preparing_.empty(); });
  }
  reject_work(true);
}

void Api::stop() {
  models_.stop();
}

void Api::reject_work(bool with_begun) {
  std::vector<std::pair<Answer, ErrorBody>> rejected;
  {
    const std::lock_guard lock(mutex_);
    for (const Work* const work : preparing_) {
      if (with_begun || !work->has_begun) rejected.emplace_back(work->answer, work->route.errors());
    }
  }
  for (const auto& [answer, errors] : rejected) send_error(*answer, being_shut_down(), errors);
}

// A model of another type than a string is the reader's to reject.
std::shared_ptr<ServedModel> Api::model_of(const ChatJson& body) {
  return models_.get(text_or_empty(body, "model"));
}

// The model of the body is known.
RequestDefaults Api::defaults_for(const ChatJson& body) const {
  RequestDefaults defaults = options_.defaults;
  const std::string name = text_or_empty(body, "model");
  if (!name.empty()) defaults.model_names = {name};
  return defaults;
}

void Api::complete(const ApiRequest& given, const Answer& answer, bool chat) {
  const std::shared_ptr<ServedModel> served = model_of(given.body);
  const SubmitTexts submit = submit_to(*served, given);
  Request request = read_request(given.body, chat, defaults_for(given.body));
  take_hints()(request.hints);
  Completion::start(served->model, submit, std::move(request), take_seeds(given), answer);
}

TakeHints Api::take_hints() {
  return [this](const std::vector<std::string>& hints) {
    if (!options_.notice) return;
    const std::lock_guard lock(mutex_);
    for (const std::string& hint : hints) {
      if (hints_.insert(hint).second) options_.notice(hint);
    }
  };
}

// The request outlives it.
TakeSeeds Api::take_seeds(const ApiRequest& request) {
  return [this, &request](std::size_t texts) -> std::uint64_t {
    if (texts > most_brief_texts) begin_long_work();
    if (!request.seed) request.seed = options_.seed ? *options_.seed + seeds_.fetch_add(texts) : std::random_device{}();
    return *request.seed;
  };
}

void Api::chat_completions(const ApiRequest& request, const Answer& answer) {
  complete(request, answer, true);
}

void Api::completions(const ApiRequest& request, const Answer& answer) {
  complete(request, answer, false);
}

ResponseRequest Api::response_request(const ApiRequest& request) const {
  return read_response_request(request.body, defaults_for(request.body), *responses_, options_.text);
}

void Api::responses(const ApiRequest& given, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(given.body);
  const SubmitTexts submit = submit_to(*served, given);
  ResponseRequest request = response_request(given);
  take_hints()(request.text.hints);
  start_response(served->model, submit, std::move(request), take_seeds(given), responses_, answer);
}

void Api::count_response_tokens(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(request.body);
  send_json(*answer, response_tokens(served->model, response_request(request)));
}

void Api::one_response(const ApiRequest& request, const Answer& answer) {
  const std::string id = response_id_of(request.path);
  if (request.method == "DELETE") {
    responses_->remove(id);
    return send_json(*answer, {{"id", id}, {"object", "response"}, {"deleted", true}});
  }
  if (query_value(request.query, "stream") == "true") {
    throw RequestError("stream is true, expected false, because only a response with background can be streamed again",
                       "stream");
  }
  const std::shared_ptr<const StoredResponse> stored = responses_->find(id, "response_id");
  if (stored->response.size() > most_brief_bytes) begin_long_work();
  answer->send(200, json_type, stored->response);
}

void Api::response_input(const ApiRequest& request, const Answer& answer) {
  const std::string id = response_id_of(request.path);
  const std::shared_ptr<const StoredResponse> stored = responses_->find(id, "response_id");
  if (stored->input.size() > most_brief_bytes) begin_long_work();
  send_json(*answer, item_list(parse_chat_json(stored->input, "the stored input"), id, request.query));
}

void Api::cancel_response(const ApiRequest& request, const Answer&) {
  const std::string id = response_id_of(request.path);
  responses_->find(id, "response_id");
  throw RequestError(fmt::format("response_id is {}, which has ended, expected one with background, which the server "
                                 "does not have; a response ends when its client closes the connection",
                                 quote(id)),
                     "response_id");
}

ChatJson Api::model_json(const ModelShelf::Listed& model) const {
  ChatJson json{{"id", model.name},
                {"object", "model"},
                {"created", model.created > 0 ? model.created : started_},
                {"owned_by", "minimind"},
                {"type", "base"},  // Mistral's, as the next
                {"capabilities", {{"completion_chat", true}}}};
  ChatJson facts = ChatJson::object();
  if (model.context > 0) {
    json["capabilities"]["function_calling"] = model.minds_tools;
    for (const char* const name : {"max_model_len", "max_context_length", "context_window"}) json[name] = model.context;
    facts["context_length"] = model.context;
    facts["thinking"] = model.minds_thinking;
  }
  facts["loras"] = model.loras;
  facts["inside"] = options_.inside;
  facts["defaults"] = defaults_json(options_.defaults);
  json["minimind"] = std::move(facts);
  return json;
}

void Api::list_models(const ApiRequest&, const Answer& answer) {
  ChatJson list = ChatJson::array();
  for (const ModelShelf::Listed& model : models_.list()) list.push_back(model_json(model));
  send_json(*answer, {{"object", "list"}, {"data", std::move(list)}});
}

void Api::one_model(const ApiRequest& request, const Answer& answer) {
  const std::string name = request.path.substr(model_path_prefix.size());
  const std::vector<ModelShelf::Listed> models = models_.list();
  auto model = std::ranges::find(models, name, &ModelShelf::Listed::name);
  if (model == models.end()) model = std::ranges::find(models, without_tag(name), &ModelShelf::Listed::name);
  if (model != models.end()) return send_json(*answer, model_json(*model));
  throw RequestError(fmt::format("model is {}, expected one of those that /v1/models lists", quote(name)), "model",
                     "model_not_found");
}

// What SGLang says of its model and of itself. The model is named, not where it is: clients may be on other machines.
void Api::sglang_info(const ApiRequest&, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = models_.only();
  const std::string& name = served->model.names().front();
  send_json(*answer, {{"model_path", name},
                      {"tokenizer_path", name},
                      {"served_model_name", name},
                      {"is_generation", true},
                      {"preferred_sampling_params", nullptr},
                      {"context_length", served->model.llm().positions},
                      {"version", MINIMIND_VERSION},
                      {"internal_states", ChatJson::array({ChatJson::object()})}});
}

void Api::text_generation_info(const ApiRequest&, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = models_.only();
  const std::size_t positions = served->model.llm().positions;
  send_json(*answer, {{"model_id", served->model.names().front()},
                      {"model_sha", nullptr},
                      {"model_dtype", nullptr},
                      {"model_pipeline_tag", "text-generation"},
                      {"max_input_tokens", positions - 1},
                      {"max_total_tokens", positions},
                      {"version", MINIMIND_VERSION}});
}

// As vLLM's, for programs that leave encoding to the server.
void Api::tokenizer_info(const ApiRequest&, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(ChatJson::object());
  const Tokenizer& tokenizer = served->model.tokenizer();
  ChatJson info{{"model_max_length", served->model.llm().positions}};
  for (const auto& [name, id] : {std::pair{"bos_token", tokenizer.bos_id()},
                                 {"eos_token", tokenizer.eos_id()},
                                 {"pad_token", tokenizer.pad_id()}}) {
    info[name] = id ? ChatJson(tokenizer.token_text(*id)) : ChatJson(nullptr);
  }
  info["chat_template"] = tokenizer.chat_template() ? ChatJson(*tokenizer.chat_template()) : ChatJson(nullptr);
  send_json(*answer, info);
}

void Api::version(const ApiRequest&, const Answer& answer) {
  send_json(*answer, {{"version", MINIMIND_VERSION}});
}

// Reads a chat that is not to be answered.
Request Api::prompt_request(const ChatJson& body) const {
  RequestDefaults defaults = defaults_for(body);
  defaults.only_prompt = true;
  return read_request(body, true, defaults);
}

// The tokens of a text as llama.cpp's server has them, and as vLLM's has them for a prompt or messages.
std::vector<std::int32_t> Api::tokens_of(const TextModel& model, const ChatJson& body) const {
  const Tokenizer& tokenizer = model.tokenizer();
  BodyFields fields(body);
  if (fields.find("messages")) {
    ChatJson chat = body;
    chat.erase("with_pieces");
    const Request asked = prompt_request(chat);
    const MarkedText text = prompt_of(model, asked);
    return tokenizer.encode_with_special(text.bytes, asked.plain_content ? text.marks : TextMarks());
  }
  for (const char* const name : {"model", "with_pieces"}) fields.find(name);
  const auto prompt = fields.text("prompt"), content = prompt ? prompt : fields.text("content");
  if (!content) BodyFields::fail_missing("content", "a string");
  const bool adds = fields.flag(prompt ? "add_special_tokens" : "add_special").value_or(prompt.has_value());
  const bool parses = prompt || fields.flag("parse_special").value_or(true);
  fields.reject_the_rest();
  const TextMarks plain = parses ? TextMarks() : MarkedText::all(*content).marks;
  return adds ? tokenizer.encode_with_special(*content, plain) : tokenizer.encode(*content, plain);
}

void Api::tokenize(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(request.body);
  const TextModel& model = served->model;
  const Tokenizer& tokenizer = model.tokenizer();
  BodyFields fields(request.body);
  fields.text("model");
  const bool pieces = fields.flag("with_pieces").value_or(false);
  const auto ids = tokens_of(model, request.body);
  // As text, because a value for each of a million tokens takes ten times as long as encoding them.
  std::vector<std::string> written(tokenizer.vocab_size());
  std::string json = R"({"tokens": [)";
  for (const std::int32_t id : ids) {
    std::string& text = written[static_cast<std::size_t>(id)];
    if (text.empty()) text = pieces ? json_line(piece_json(tokenizer, id)) : std::to_string(id);
    if (json.back() != '[') json += ", ";
    json += text;
  }
  answer->send(200, json_type,
               fmt::format(R"({}], "count": {}, "max_model_len": {}}})", json, ids.size(), model.llm().positions));
}

void Api::detokenize(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(request.body);
  const Tokenizer& tokenizer = served->model.tokenizer();
  BodyFields fields(request.body);
  fields.text("model");
  const ChatJson& tokens = fields.must_have("tokens", "a list of ids");
  const auto is_known = [&](const ChatJson& id) {
    return id.is_number_unsigned() && id.get<std::uint64_t>() < tokenizer.vocab_size() &&
           tokenizer.has(id.get<std::int32_t>());
  };
  if (tokens.size() > options_.text) {
    throw RequestError(fmt::format("tokens has {} ids, expected at most {}, the limit of the server's --max-text",
                                   tokens.size(), options_.text),
                       "tokens", "text_too_large");
  }
  if (!tokens.is_array() || !std::ranges::all_of(tokens, is_known)) {
    fields.fail("tokens", "a list of ids in the vocabulary");
  }
  fields.reject_the_rest();
  const auto ids = tokens.get<std::vector<std::int32_t>>();
  const std::string text = tokenizer.decode(ids, false);
  send_json(*answer, {{"content", text}, {"prompt", text}});
}

// Takes the body of a chat completion.
void Api::apply_template(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = model_of(request.body);
  send_json(*answer, {{"prompt", prompt_of(served->model, prompt_request(request.body)).bytes}});
}

// Runs on the thread for what takes long, one request at a time and behind the engine: texts that run go on meanwhile.
void Api::inside(const ApiRequest& request, const Answer& answer) {
  if (!options_.inside) {
    throw RequestError(
        "/v1/inside is off, because other machines reach the server; its operator starts it with --inside", "",
        "permission_denied");
  }
  begin_long_work();
  const std::shared_ptr<ServedModel> served = model_of(request.body);
  std::shared_ptr<const Model> weights;  // which the engine's thread may replace
  served->engine.run_between_steps([&](ContextPool&) { weights = served->model.llm().model; });
  send_json(*answer, inside_json(served->model, *weights, request.body, defaults_for(request.body)));
}

void Api::generate(const ApiRequest& request, const Answer& answer) {
  if (request.body.contains("inputs")) {
    try {
      return text_generation(request, answer);
    } catch (const RequestError& error) {
      return send_error(*answer, error, errors_of(Dialect::text_generation));
    }
  }
  const std::shared_ptr<ServedModel> served = models_.only();
  start_rollout(served->model, submit_to(*served, request), request.body, take_seeds(request), take_hints(), answer);
}

void Api::text_generation(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = models_.only();
  const TextGenerationRoute route = request.path == "/"           ? TextGenerationRoute::root
                                    : request.path == "/generate" ? TextGenerationRoute::generate
                                                                  : TextGenerationRoute::generate_stream;
  start_text_generation(route, served->model, submit_to(*served, request), request.body, take_seeds(request), answer);
}

// Returns the path of the checkpoint without links. Throws RequestError if the client may not name it.
std::string Api::checkpoint_of(const std::string& path) const {
  if (auto real = weights_folders_.resolve(path)) return *real;
  throw RequestError(fmt::format("model_path is {}, expected a checkpoint {}", quote(path),
                                 options_.weights_folders.empty()
                                     ? "in a folder of --weights-from, which the server was started without"
                                     : "in the folder of the served model, in the server's current folder, or in one "
                                       "of the server's --weights-from"),
                     "model_path", "permission_denied");
}

// Running texts end with the old weights, which stay if the file is bad. The others start with the new ones.
void Api::update_weights(const ApiRequest& request, const Answer& answer) {
  BodyFields fields(request.body);
  const auto path = fields.text("model_path");
  if (path.value_or("").empty()) {
    throw RequestError("model_path is missing or empty, expected a checkpoint", "model_path",
                       "missing_required_parameter");
  }
  for (const char* const name : {"load_format", "weight_version"}) fields.text(name);
  for (const char* const name : {"abort_all_requests", "is_async", "keep_pause"}) fields.require(name, false);
  for (const char* const name : {"flush_cache", "torch_empty_cache", "recapture_cuda_graph"}) fields.flag(name);
  fields.reject_the_rest();
  const std::string checkpoint = checkpoint_of(*path);
  begin_long_work();
  load_weights(*models_.only(), checkpoint, *path, answer);
}

// The model is that of only().
void Api::load_weights(ServedModel& served, const std::string& checkpoint, const std::string& path,
                       const Answer& answer) {
  if (served.engine.waits_to_replace()) {  // each update takes the memory of its weights
    throw RequestError("another update waits for texts with older weights to end; try again later", "", "queue_full");
  }
  std::shared_ptr<Model> model;
  try {
    model = std::make_shared<Model>(served.model.load_weights_of(checkpoint));
  } catch (const std::exception& error) {
    if (options_.log) options_.log(fmt::format("/update_weights_from_disk: {}", error.what()));
    // The reason may quote the file.
    throw RequestError(
        fmt::format("model_path is {}, which cannot be loaded; the server's log has the reason", quote(path)),
        "model_path");
  }
  models_.keep(served);
  served.engine.replace_weights(
      [&served, model] { served.model.replace_weights(model); },
      [answer, path](const std::exception_ptr& error) {
        if (error) return send_error(*answer, request_error_of(error));
        send_json(*answer,
                  {{"success", true}, {"message", "the weights are those of " + path}, {"num_paused_requests", 0}});
      });
}

void Api::flush_cache(const ApiRequest& request, const Answer& answer) {
  if (request.body.is_object()) BodyFields(request.body).reject_the_rest();
  models_.only()->engine.run_between_steps([](ContextPool& pool) { pool.clear(); },
                                           [answer](const std::exception_ptr& error) {
                                             if (error) return send_error(*answer, request_error_of(error));
                                             send_json(*answer, {{"success", true}, {"message", "the cache is empty"}});
                                           });
}

void Api::ollama(const ApiRequest& request, const Answer& answer, OllamaRoute route) {
  const std::string name = ollama_model_name(request.body);
  if (asks_to_unload(route, request.body)) {
    if (name.empty()) fail_without_model();
    models_.unload(name);
    return send_json(*answer, ollama_unloaded(route, request.body));
  }
  const std::shared_ptr<ServedModel> served = models_.get(name);
  start_ollama(route, served->model, submit_to(*served, request), request.body, options_.defaults, take_seeds(request),
               take_hints(), answer);
}

void Api::ollama_chat(const ApiRequest& request, const Answer& answer) {
  ollama(request, answer, OllamaRoute::chat);
}

void Api::ollama_generate(const ApiRequest& request, const Answer& answer) {
  ollama(request, answer, OllamaRoute::generate);
}

void Api::ollama_models(const ApiRequest&, const Answer& answer) {
  send_json(*answer, ollama_tags(models_.list(), started_));
}

void Api::ollama_running_models(const ApiRequest&, const Answer& answer) {
  send_json(*answer, ollama_running(models_.list(), started_));
}

void Api::ollama_show_model(const ApiRequest& request, const Answer& answer) {
  const std::shared_ptr<ServedModel> served = models_.get(ollama_model_name(request.body));
  std::time_t modified = started_;
  for (const ModelShelf::Listed& model : models_.list()) {
    if (model.name == served->model.names().front() && model.created > 0) modified = model.created;
  }
  send_json(*answer, ollama_show(request.body, served->model, options_.defaults, modified));
}

void Api::ollama_version(const ApiRequest&, const Answer& answer) {
  send_json(*answer, {{"version", ollama_api_version}, {"minimind", MINIMIND_VERSION}});
}

// Returns what has made no progress for too long, in words; empty if nothing.
std::string Api::stuck_reason() const {
  using Seconds = std::chrono::duration<double>;
  const auto longest = Seconds(options_.stuck_after);
  if (const Seconds silent = models_.silent_for(); silent > longest) {
    return fmt::format("the engine has made no step for {:.0f} s", silent.count());
  }
  const Seconds busy = brief_tasks_.busy_for();
  if (busy <= longest) return "";
  return fmt::format("a request has been read for {:.0f} s, and others wait for it", busy.count());
}

void Api::health(const ApiRequest&, const Answer& answer) {
  if (draining_) return answer->send(503, json_type, R"({"status": "shutting down"})", {{"Retry-After", "1"}});
  const std::string reason = stuck_reason();
  if (reason.empty()) return answer->send(200, json_type, R"({"status": "ok"})");
  answer->send(503, json_type, json_line({{"status", "stuck"}, {"reason", reason}}), {{"Retry-After", "1"}});
}

// What distributes requests asks for it: a server that is healthy may have no room at the moment.
void Api::ready(const ApiRequest& request, const Answer& answer) {
  if (draining_ || !stuck_reason().empty() || !models_.is_full()) return health(request, answer);
  answer->send(503, json_type, R"({"status": "full", "reason": "too many requests are waiting"})",
               {{"Retry-After", "1"}});
}

void Api::metrics(const ApiRequest&, const Answer& answer) {
  answer->send(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(answers_->counts(), models_.counts()));
}

}  // namespace minimind
