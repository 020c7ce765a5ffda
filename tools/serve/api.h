#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"
#include "tools/serve/engine_thread.h"
#include "tools/serve/model_shelf.h"
#include "tools/serve/ollama.h"
#include "tools/serve/response_request.h"
#include "tools/serve/sandbox.h"
#include "tools/serve/task_thread.h"

namespace minimind {

// The answers sent so far, by route and status.
class AnswerCounts {
 public:
  using Counts = std::map<std::pair<std::string, int>, std::uint64_t>;

  void add(const std::string& route, int status);
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

struct ApiOptions {
  RequestDefaults defaults;
  std::optional<std::uint64_t> seed;  // of requests without one, plus the number of texts before; std::nullopt: random
  std::size_t requests = 256;         // that may wait to be read
  std::size_t waiting_bytes = std::size_t{256} << 20;  // of their bodies
  std::size_t text = std::size_t{512} << 10;           // most bytes of text in a body
  std::vector<std::string> weights_folders{};          // that clients may name checkpoints in
  bool inside = false;                                 // /v1/inside is on
  std::chrono::milliseconds stuck_after{30'000};       // without progress; then /health fails
  // Gets what only the operator may know: why a file that a client named cannot be read. Empty: nobody does.
  std::function<void(const std::string&)> log{};
  // Gets the name of a field that requests have and that changes nothing, once. Empty: nobody does.
  std::function<void(const std::string&)> notice{};
};

struct ApiRequest;

// The routes of the server: what each answers.
class Api {
 public:
  // `models` must outlive this.
  Api(ModelShelf& models, ApiOptions options);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  // Waits for the request that is being prepared; those that wait get no answer.
  ~Api();

  // Answers a request, now or later. Does not block, so that the thread of the connections may call it.
  void handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer);

  // Rejects new texts, and those that are not yet prepared. The others come to their end.
  void drain();
  // After that, ends the others with an error, which is the last event of a stream.
  void stop();

 private:
  using Answer = std::shared_ptr<HttpAnswer>;
  struct Route {
    std::string method;
    void (Api::*handle)(const ApiRequest&, const Answer&);
    bool quick = false;         // answered on the calling thread
    bool may_be_empty = false;  // the body
    Dialect dialect = Dialect::openai;
    std::string_view other_method{};                            // that it takes, too
    std::size_t most_brief_bytes = minimind::most_brief_bytes;  // a larger body is prepared next to others

    bool takes(const HttpRequest& request) const;
    std::string methods() const { return method + (other_method.empty() ? "" : ", ") + std::string(other_method); }
    ErrorBody errors() const { return errors_of(dialect); }
  };
  // text-generation-inference has Ollama's.
  static ErrorBody errors_of(Dialect dialect) {
    return dialect == Dialect::ollama || dialect == Dialect::text_generation ? ollama_error_body : error_body;
  }
  using Routes = std::map<std::string, Route, std::less<>>;
  static const Routes& routes();
  static Routes::const_iterator find_route(std::string& path);
  static std::string route_name(const std::string& path);

  // A request from its arrival until it is prepared: until the engine has its texts, or it is answered.
  class Work;
  bool post(const std::shared_ptr<Work>& work);
  bool post_long(const std::shared_ptr<Work>& work, std::size_t cost);
  void read(Work& work);
  void prepare(const std::shared_ptr<Work>& work, bool is_long);
  RequestError cannot_wait() const;
  void reject_work(bool with_begun);
  void guarded(HttpAnswer& answer, ErrorBody errors, const std::function<void()>& action);
  void complete(const ApiRequest& request, const Answer& answer, bool chat);
  void chat_completions(const ApiRequest& request, const Answer& answer);
  void completions(const ApiRequest& request, const Answer& answer);
  ResponseRequest response_request(const ApiRequest& request) const;
  void responses(const ApiRequest& request, const Answer& answer);
  void count_response_tokens(const ApiRequest& request, const Answer& answer);
  void one_response(const ApiRequest& request, const Answer& answer);
  void response_input(const ApiRequest& request, const Answer& answer);
  void cancel_response(const ApiRequest& request, const Answer& answer);
  void list_models(const ApiRequest& request, const Answer& answer);
  void sglang_info(const ApiRequest& request, const Answer& answer);
  void text_generation_info(const ApiRequest& request, const Answer& answer);
  void tokenizer_info(const ApiRequest& request, const Answer& answer);
  void version(const ApiRequest& request, const Answer& answer);
  Request prompt_request(const ChatJson& body) const;
  std::vector<std::int32_t> tokens_of(const TextModel& model, const ChatJson& body) const;
  void tokenize(const ApiRequest& request, const Answer& answer);
  void detokenize(const ApiRequest& request, const Answer& answer);
  void apply_template(const ApiRequest& request, const Answer& answer);
  void ollama(const ApiRequest& request, const Answer& answer, OllamaRoute route);
  void ollama_chat(const ApiRequest& request, const Answer& answer);
  void ollama_generate(const ApiRequest& request, const Answer& answer);
  void ollama_models(const ApiRequest& request, const Answer& answer);
  void ollama_running_models(const ApiRequest& request, const Answer& answer);
  void ollama_show_model(const ApiRequest& request, const Answer& answer);
  void ollama_version(const ApiRequest& request, const Answer& answer);
  void health(const ApiRequest& request, const Answer& answer);
  void ready(const ApiRequest& request, const Answer& answer);
  void metrics(const ApiRequest& request, const Answer& answer);
  void inside(const ApiRequest& request, const Answer& answer);
  void generate(const ApiRequest& request, const Answer& answer);
  void text_generation(const ApiRequest& request, const Answer& answer);
  std::string checkpoint_of(const std::string& path) const;
  void update_weights(const ApiRequest& request, const Answer& answer);
  void flush_cache(const ApiRequest& request, const Answer& answer);
  void one_model(const ApiRequest& request, const Answer& answer);
  void handle_route(const Route& route, HttpRequest request, Answer answer);
  std::shared_ptr<ServedModel> model_of(const ChatJson& body);
  RequestDefaults defaults_for(const ChatJson& body) const;
  void load_weights(ServedModel& served, const std::string& checkpoint, const std::string& path, const Answer& answer);
  std::string stuck_reason() const;
  ChatJson model_json(const ModelShelf::Listed& model) const;
  TakeSeeds take_seeds(const ApiRequest& request);
  TakeHints take_hints();

  ModelShelf& models_;
  ApiOptions options_;
  const WeightsFolders weights_folders_;
  const std::time_t started_;
  std::atomic<bool> draining_ = false;
  // Also counts the answers of texts that end after this.
  const std::shared_ptr<AnswerCounts> answers_ = std::make_shared<AnswerCounts>();
  const std::shared_ptr<ResponseStore> responses_ = std::make_shared<ResponseStore>();
  std::atomic<std::uint64_t> seeds_ = 0;  // given to texts

  std::mutex mutex_;  // guards all below, up to the threads
  std::condition_variable prepared_;
  std::list<Work*> preparing_;
  std::size_t waiting_bytes_ = 0;  // of the bodies of all Work
  std::set<std::string> hints_;    // that `notice` has got

  // Prepare requests: those that take long, and beside them small ones in order. The brief tasks end first, because
  // they give to the long ones what turns out to take long.
  TaskThread long_tasks_, brief_tasks_;
};

}  // namespace minimind
