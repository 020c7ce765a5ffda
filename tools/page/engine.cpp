#include "tools/page/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "runtime/engine/matrix.h"
#include "tools/http/http.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "tools/options/load_llm.h"
#include "tools/serve/completion.h"
#include "tools/serve/inside.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

// As the server has it: an answer with its thoughts.
constexpr std::size_t default_tokens = 2048;

// Two texts at once, for a comparison, and their contexts for the next turn: each takes 50 MB with MiniMind-3.
constexpr TextQueueLimits limits{
    .parallel = 2, .kv_memory = std::size_t{512} << 20, .step_tokens = 32, .longest_step = 2, .most_idle = 2};

// The first, and two that were opened.
constexpr std::size_t most_models = 3;

// Seconds of a step with prompts: a stop is to be noticed within 50 ms.
constexpr double longest_prompt_step = 0.032;

// Products of a weight and an activation in a second, on the slowest machines.
constexpr double slow_products = 1e9;

using Clock = std::chrono::steady_clock;

// Of the first step, of which no time is known yet.
PromptLimit first_prompt_limit(std::size_t parameters) {
  PromptLimit limit(longest_prompt_step, 1, limits.step_tokens);
  for (std::size_t tokens = 0; tokens != limit.tokens();) {
    tokens = limit.tokens();
    limit.learn(tokens, static_cast<double>(tokens * parameters) / slow_products);
  }
  return limit;
}

GenerationArguments arguments_of(const PageModel& model) {
  GenerationArguments arguments;
  arguments.checkpoint.model = model.path;
  arguments.checkpoint.loras = model.loras;
  arguments.checkpoint.rope_scaling = model.rope_scaling;
  arguments.run.threads = 1;
  arguments.run.quiet = true;
  arguments.sampling.given.max_tokens = default_tokens;
  return arguments;
}

RequestDefaults page_defaults() {
  RequestDefaults defaults;
  defaults.parameters.max_tokens = default_tokens;
  return defaults;
}

}  // namespace

PageModel read_page_model(std::string_view json) {
  const std::string source = "the model";
  const ChatJson object = parse_chat_json(json, source);
  const ChatFields fields(object, source);
  fields.allow_only({"path", "loras", "rope_scaling"});
  PageModel model{.path = fields.required_text("path")};
  if (object.contains("loras")) model.loras = object["loras"].get<std::vector<std::string>>();
  if (object.contains("rope_scaling")) model.rope_scaling = fields.required_text("rope_scaling");
  return model;
}

std::vector<float> page_logits(const PageModel& model, std::span<const std::int32_t> tokens) {
  const GenerationArguments arguments = arguments_of(model);
  const LLM llm = load_llm(arguments.checkpoint, arguments.run);
  std::vector<float> all(tokens.size() * llm.config.vocab_size);
  for_each_logits(llm, tokens, "logits", [&](std::size_t first, Matrix<const float> logits) {
    std::copy_n(logits.data, logits.rows * logits.cols, all.data() + first * llm.config.vocab_size);
  });
  return all;
}

// One answer, whose parts become events. Once nobody waits for it, there are none.
class PageEngine::Answer : public HttpAnswer {
 public:
  Answer(int number, std::shared_ptr<ChatJson> events) : number_(number), events_(std::move(events)) {}

  int number() const { return number_; }
  void stop() { gone_ = true; }

  void send(int status, std::string_view, std::string body, const HttpHeaders&) override {
    add(ChatJson::array({number_, "send", status, std::move(body)}));
  }
  void start(std::string_view) override { add(ChatJson::array({number_, "start"})); }
  // Pieces that follow each other are one.
  void write(std::string piece) override {
    const bool follows = !events_->empty() && events_->back()[0] == number_ && events_->back()[1] == "write";
    if (!follows) return add(ChatJson::array({number_, "write", std::move(piece)}));
    if (!gone_) events_->back()[2].get_ref<std::string&>() += piece;
  }
  void finish() override { add(ChatJson::array({number_, "finish"})); }
  const std::atomic<bool>& gone() const override { return gone_; }
  const std::atomic<bool>& behind() const override { return behind_; }

 private:
  void add(ChatJson event) {
    if (!gone_) events_->push_back(std::move(event));
  }

  const int number_;
  const std::shared_ptr<ChatJson> events_;
  std::atomic<bool> gone_ = false;
  const std::atomic<bool> behind_ = false;  // a step's events are read before the next one
};

PageEngine::Loaded::Loaded(const GenerationArguments& arguments, const std::string& chat_template)
    : model(arguments, chat_template),
      queue(model.llm(), limits),
      prompt_limit(first_prompt_limit(model.facts().parameters)) {}

PageEngine::PageEngine() : defaults_(page_defaults()), events_(std::make_shared<ChatJson>(ChatJson::array())) {}

std::string PageEngine::load(const PageModel& model) {
  const auto tokenizer = find_tokenizer(model.path);
  if (!tokenizer) {
    throw Error(fmt::format("{}: has no tokenizer, expected a tokenizer.json; choose both files at once", model.path));
  }
  GenerationArguments arguments = arguments_of(model);
  arguments.tokenizer = *tokenizer;
  std::unique_ptr<Loaded> loaded;
  while (!loaded) {
    try {
      loaded = std::make_unique<Loaded>(arguments, "");
    } catch (const std::bad_alloc&) {
      if (!close_oldest()) throw;
    }
  }
  const std::string name = loaded->model.names().front();
  const auto has_name = [&](const auto& other) { return other->model.names().front() == name; };
  const auto known = std::ranges::find_if(models_, has_name);
  if (known == models_.end()) {
    if (models_.size() >= most_models) close_oldest();
    models_.push_back(std::move(loaded));
  } else {
    end_texts(**known, "the model was replaced by another of its name");
    *known = std::move(loaded);
  }
  return name;
}

// Closes the model that was opened before all others, but for the first. Returns false if there is none.
bool PageEngine::close_oldest() {
  if (models_.size() < 2) return false;
  end_texts(*models_[1], "the model was closed: another took its memory; open it again");
  models_.erase(models_.begin() + 1);
  return true;
}

void PageEngine::end_texts(Loaded& loaded, const char* reason) {
  const auto error = std::make_exception_ptr(Error(reason));
  loaded.queue.end_waiting(error);
  loaded.queue.end_running(error);
  loaded.queue.report();
}

std::string PageEngine::models() const {
  ChatJson list = ChatJson::array();
  for (const auto& loaded : models_) {
    const TextModel& model = loaded->model;
    list.push_back({{"id", model.names().front()},
                    {"object", "model"},
                    {"max_model_len", model.llm().positions},
                    {"minimind",
                     {{"context_length", model.llm().positions},
                      {"thinking", model.minds_thinking()},
                      {"inside", true},
                      {"defaults", defaults_json(defaults_)}}}});
  }
  return json_line({{"object", "list"}, {"data", std::move(list)}});
}

PageEngine::Loaded& PageEngine::named(const std::string& name) {
  const auto has_name = [&](const auto& loaded) { return loaded->model.has_name(name); };
  const auto found = name.empty() ? models_.begin() : std::ranges::find_if(models_, has_name);
  if (found != models_.end()) return **found;
  throw RequestError(fmt::format("model is {}, expected one that is loaded", quote(name)), "model", "model_not_found");
}

void PageEngine::ask(int number, std::string_view path, std::string_view body) {
  const auto answer = std::make_shared<Answer>(number, events_);
  answers_.push_back(answer);
  try {
    const ChatJson json = parse_body(body);
    const auto model = json.find("model");
    Loaded& loaded = named(model != json.end() && model->is_string() ? model->get<std::string>() : "");
    RequestDefaults defaults = defaults_;
    defaults.model_names = loaded.model.names();
    if (path == "v1/inside") {
      return answer->send(200, "", json_line(inside_json(loaded.model, *loaded.model.llm().model, json, defaults)), {});
    }
    const bool is_chat = path == "v1/chat/completions";
    if (!is_chat && path != "v1/completions")
      throw RequestError(fmt::format("{} is unknown here", path), "", "not_found");
    const auto submit = [&](std::vector<TextJob> jobs) { loaded.queue.submit(std::move(jobs)); };
    const auto take_seeds = [](std::size_t) -> std::uint64_t { return std::random_device{}(); };
    Completion::start(loaded.model, submit, read_request(json, is_chat, defaults), take_seeds, answer);
  } catch (...) {
    send_error(*answer, request_error_of(std::current_exception()));
  }
}

void PageEngine::stop(int number) {
  for (const auto& answer : answers_) {
    if (const auto alive = answer.lock(); alive && alive->number() == number) alive->stop();
  }
}

void PageEngine::step(Loaded& loaded) {
  loaded.queue.end_gone();
  loaded.queue.start();
  try {
    const auto start = Clock::now();
    loaded.queue.compute(loaded.prompt_limit.tokens());
    loaded.prompt_limit.learn(loaded.queue.work().tokens, std::chrono::duration<double>(Clock::now() - start).count());
  } catch (...) {
    loaded.queue.end_running(std::current_exception());
  }
  loaded.queue.report();
}

bool PageEngine::step() {
  for (const auto& loaded : models_) {
    if (loaded->queue.texts() > 0) step(*loaded);
  }
  std::erase_if(answers_, [](const auto& answer) { return answer.expired(); });
  return std::ranges::any_of(models_, [](const auto& loaded) { return loaded->queue.texts() > 0; });
}

std::string PageEngine::take_events() {
  return json_line(std::exchange(*events_, ChatJson::array()));
}

}  // namespace minimind
