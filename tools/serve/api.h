#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/request.h"
#include "tools/openai/text_model.h"
#include "tools/serve/engine_thread.h"
#include "tools/serve/model_shelf.h"
#include "tools/serve/ollama.h"
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
  // Where new weights may come from: checkpoints in these folders, or any that the server can read.
  std::vector<std::string> weights_folders{};
  bool any_weights = false;
};

// The routes of the server: what each answers.
class Api {
 public:
  // `models` must outlive this.
  Api(ModelShelf& models, ApiOptions options);

  // Answers a request, now or later. Does not block, so that the thread of the connections may call it.
  void handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer);

  // Rejects new texts. The others come to their end.
  void drain();

 private:
  using Answer = std::shared_ptr<HttpAnswer>;
  struct Route {
    std::string method;
    void (Api::*handle)(const HttpRequest&, const Answer&);
    bool quick = false;  // answered on the calling thread
  };
  static const std::map<std::string, Route, std::less<>>& routes();

  void run(const Route& route, const HttpRequest& request, const Answer& answer);
  void complete(const HttpRequest& request, const Answer& answer, bool chat);
  void chat_completions(const HttpRequest& request, const Answer& answer);
  void completions(const HttpRequest& request, const Answer& answer);
  void list_models(const HttpRequest& request, const Answer& answer);
  void tokenize(const HttpRequest& request, const Answer& answer);
  void detokenize(const HttpRequest& request, const Answer& answer);
  void apply_template(const HttpRequest& request, const Answer& answer);
  void ollama(const HttpRequest& request, const Answer& answer, OllamaRoute route);
  void ollama_chat(const HttpRequest& request, const Answer& answer);
  void ollama_generate(const HttpRequest& request, const Answer& answer);
  void ollama_models(const HttpRequest& request, const Answer& answer);
  void ollama_version(const HttpRequest& request, const Answer& answer);
  void health(const HttpRequest& request, const Answer& answer);
  void metrics(const HttpRequest& request, const Answer& answer);
  void generate(const HttpRequest& request, const Answer& answer);
  void check_weights_path(const std::string& path) const;
  void update_weights(const HttpRequest& request, const Answer& answer);
  void flush_cache(const HttpRequest& request, const Answer& answer);
  void one_model(const HttpRequest& request, const Answer& answer);
  void handle_route(const Route& route, HttpRequest request, Answer answer);
  ServedModel& model_of(const ChatJson& body, const Answer& answer);
  Request read(const ChatJson& body, bool chat) const;
  ChatJson model_json(const ModelShelf::Listed& model) const;
  std::uint64_t next_seed(std::size_t texts);

  ModelShelf& models_;
  ApiOptions options_;
  const std::time_t started_;
  std::atomic<bool> draining_ = false;
  AnswerCounts answers_;
  std::uint64_t seeds_ = 0;  // given to texts; of the task thread
  TaskThread tasks_;         // reads requests, which may take longer than connections can wait
};

}  // namespace minimind
