#include "tools/serve/api.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/generate/generate.h"
#include "tests/support/cases.h"
#include "tests/support/fake_answer.h"
#include "tests/support/linear_time.h"
#include "tests/support/temporary_folder.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "tools/serve/answer_reader.h"
#include "tools/serve/completion.h"
#include "tools/serve/ollama.h"
#include "tools/serve/ollama_models.h"
#include "tools/serve/response_items.h"
#include "tools/serve/response_request.h"
#include "tools/terminal/language.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

ModelShelf::Settings settings(std::size_t parallel = 8, std::size_t queue = 100) {
  ModelShelf::Settings settings{.arguments = {},
                                .chat_template = "",
                                .limits = {.parallel = parallel, .kv_memory = std::size_t{64} << 20, .queue = queue},
                                .models_memory = std::size_t{20} << 20};
  settings.arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  settings.arguments.run.quiet = true;
  settings.arguments.run.threads = 1;
  return settings;
}

const TextModel& demo_model() {
  static const TextModel model(settings().arguments, "");
  return model;
}

ApiOptions options() {
  ApiOptions options;
  options.defaults.parameters.max_tokens = 16;
  options.seed = 7;
  options.weights_folders = {MINIMIND_SOURCE_DIR "/weights", MINIMIND_SOURCE_DIR "/tests"};
  options.inside = true;
  return options;
}

// Keeps the engine's thread busy until it is released.
class HeldEngine {
 public:
  explicit HeldEngine(EngineThread& engine)
      : thread_([this, &engine] {
          engine.run_between_steps([this](ContextPool&) {
            begun_.set_value();
            go_.get_future().wait();
          });
        }) {
    begun_.get_future().wait();
  }
  HeldEngine(const HeldEngine&) = delete;
  HeldEngine& operator=(const HeldEngine&) = delete;
  ~HeldEngine() { release(); }

  void release() {
    if (!thread_.joinable()) return;
    go_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> begun_, go_;
  std::thread thread_;
};

std::shared_ptr<FakeAnswer> post_to(Api& api, const std::string& path, const std::string& body,
                                    std::shared_ptr<FakeAnswer> answer = std::make_shared<FakeAnswer>()) {
  api.handle(
      {.method = "POST", .path = path, .query = "", .headers = {{"content-type", "application/json"}}, .body = body},
      answer);
  return answer;
}

std::shared_ptr<FakeAnswer> get_from(Api& api, const std::string& path) {
  auto answer = std::make_shared<FakeAnswer>();
  api.handle({.method = "GET", .path = path, .query = "", .headers = {}, .body = ""}, answer);
  return answer;
}

class ApiTest : public testing::Test {
 protected:
  std::shared_ptr<FakeAnswer> post(const std::string& path, const std::string& body,
                                   std::shared_ptr<FakeAnswer> answer = std::make_shared<FakeAnswer>()) {
    return post_to(api, path, body, std::move(answer));
  }
  std::shared_ptr<FakeAnswer> post_and_wait(const std::string& path, const Json& body) {
    auto answer = post(path, body.dump());
    EXPECT_TRUE(answer->wait()) << body;
    return answer;
  }
  std::shared_ptr<FakeAnswer> chat(Json body) {
    if (!body.contains("messages")) body["messages"] = {{{"role", "user"}, {"content", "写一首五言绝句，题目：江上"}}};
    return post_and_wait("/v1/chat/completions", body);
  }
  std::shared_ptr<FakeAnswer> complete(Json body) {
    if (!body.contains("prompt")) body["prompt"] = "床前明月光，";
    return post_and_wait("/v1/completions", body);
  }
  std::shared_ptr<FakeAnswer> get(const std::string& path) {
    auto answer = get_from(api, path);
    EXPECT_TRUE(answer->wait());
    return answer;
  }

  ModelShelf models{settings()};
  EngineThread& engine = models.only()->engine;
  Api api{models, options()};
};

// The text of a completion as generate() makes it.
std::string text_alone(const std::string& prompt, std::uint64_t seed, std::size_t max_tokens) {
  const TextModel& model = demo_model();
  Request request;
  request.prompts = {{.text = prompt}};
  request.max_tokens = max_tokens;
  request.seed = seed;
  const TextTask task = model.tasks(request, 0, 0).front();
  Forward forward = model.llm().forward(64, model.llm().positions);
  Context context = model.llm().context(task.capacity);
  const std::atomic<bool> never = false;
  return generate(
             forward, context, &model.tokenizer(), task.prompt, task.options, [](std::string_view) {}, never)
      .text;
}

TEST_F(ApiTest, AnswersAChat) {
  const auto answer = chat({{"seed", 3}});
  ASSERT_EQ(answer->status(), 200) << answer->body();
  EXPECT_EQ(answer->type(), "application/json");
  const Json json = answer->json();
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "minimind-poet");
  ASSERT_EQ(json["choices"].size(), 1u);
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_NE(choice["message"]["content"], "");
  EXPECT_TRUE(choice["message"]["refusal"].is_null());
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(json["usage"]["total_tokens"],
            json["usage"]["prompt_tokens"].get<int>() + json["usage"]["completion_tokens"].get<int>());
}

TEST_F(ApiTest, StreamsTheSameChat) {
  const Json whole = chat({{"seed", 3}})->json();
  const auto answer = chat({{"seed", 3}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(answer->type(), "text/event-stream; charset=utf-8");
  const std::vector<Json> events = answer->events();
  ASSERT_GE(events.size(), 4u) << answer->body();
  EXPECT_TRUE(answer->has_done());
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  std::string content;
  for (const Json& event : events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], events[0]["id"]);
    EXPECT_TRUE(event.contains("usage"));
    if (!event["choices"].empty()) content += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(content, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"]);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
}

const Json from_user{{"role", "user"}, {"content", "江上"}};

TEST_F(ApiTest, EachChunkHasTheUsageSoFarIfThatIsAskedFor) {
  for (const char* const path : {"/v1/chat/completions", "/v1/completions"}) {
    Json body{{"seed", 3},
              {"max_tokens", 12},
              {"stream", true},
              {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}};
    body.update(path == std::string("/v1/completions") ? Json{{"prompt", "江上"}} : Json{{"messages", {from_user}}});
    const std::vector<Json> events = post_and_wait(path, body)->events();
    ASSERT_GE(events.size(), 4u);
    std::size_t before = 0;
    for (const Json& event : events) {
      const Json& usage = event["usage"];
      EXPECT_EQ(usage["prompt_tokens"], events.back()["usage"]["prompt_tokens"]);
      EXPECT_GE(usage["completion_tokens"].get<std::size_t>(), before);
      before = usage["completion_tokens"].get<std::size_t>();
    }
    EXPECT_LT(events[1]["usage"]["completion_tokens"].get<std::size_t>(), before);
  }
}

TEST_F(ApiTest, RoutesOfOpenAiAreAlsoThereWithoutV1) {
  EXPECT_EQ(post_and_wait("/chat/completions", {{"messages", {from_user}}, {"seed", 3}})->json()["choices"],
            post_and_wait("/v1/chat/completions", {{"messages", {from_user}}, {"seed", 3}})->json()["choices"]);
  EXPECT_EQ(get("/models")->json(), get("/v1/models")->json());
  EXPECT_EQ(get("/health")->json(), get("/v1/health")->json());
  EXPECT_EQ(post_and_wait("/tokenize", {{"prompt", "a"}})->json(),
            post_and_wait("/v1/tokenize", {{"prompt", "a"}})->json());
  EXPECT_EQ(post_and_wait("/v1/detokenize", {{"tokens", {300, 301}}})->status(), 200);
  const std::string model = get("/v1/models")->json()["data"][0]["id"];
  EXPECT_EQ(get("/models/" + model)->json()["id"], model);
  EXPECT_NE(get("/images/generations")->body().find("not images"), std::string::npos);
  for (const char* const before : {"/openai", "/v1/openai", "/v1"}) {
    EXPECT_EQ(get(before + std::string("/v1/models"))->json(), get("/v1/models")->json());
    EXPECT_NE(get(before + std::string("/v1/images/generations"))->body().find("not images"), std::string::npos);
  }
  for (const char* const path : {"/v1/v1/v1/models", "/v1/v1/flush_cache", "/v1/v1", "/chat"}) {
    EXPECT_EQ(get(path)->status(), 404) << path;
  }
}

TEST_F(ApiTest, TheRoutesOfAzureAreThoseOfOpenAi) {
  EXPECT_EQ(get("/openai/models")->json(), get("/v1/models")->json());
  const Json body{{"prompt", "a"}, {"max_tokens", 1}};
  EXPECT_EQ(post_and_wait("/openai/deployments/gpt-4o/completions", body)->status(), 200);
  const auto foundry = post_and_wait("/models/chat/completions", {{"messages", {from_user}}, {"max_tokens", 1}});
  EXPECT_EQ(foundry->status(), 200) << foundry->body();
  for (const char* const path : {"/openai/deployments/", "/openai/deployments/m", "/openai/deployments//", "/openai/",
                                 "/openai", "/openai/flush_cache", "/openai/deployments/m/generate"}) {
    EXPECT_EQ(post_and_wait(path, body)->status(), 404) << path;
  }
}

TEST_F(ApiTest, ARouteMayEndWithASlash) {
  for (const std::string path : {"/health", "/v1/models", "/models", "/api/tags", "/v1/models/minimind-poet"}) {
    EXPECT_EQ(get(path + '/')->json(), get(path)->json()) << path;
    EXPECT_EQ(get(path + "//")->status(), 404) << path;
  }
  EXPECT_EQ(post_and_wait("/v1/completions/", {{"prompt", "a"}, {"max_tokens", 1}})->status(), 200);
  EXPECT_EQ(get("/")->type(), "text/html; charset=utf-8");
  for (const char* const path : {"//", "/page.js/", "/v1/"}) EXPECT_EQ(get(path)->status(), 404) << path;
}

TEST_F(ApiTest, TokenizesAPromptAsVllmDoes) {
  const Json ids = post_and_wait("/tokenize", {{"content", "床前"}})->json();
  const Json of_prompt = post_and_wait("/tokenize", {{"prompt", "床前"}, {"add_special_tokens", false}})->json();
  EXPECT_EQ(of_prompt, ids);
  EXPECT_EQ(ids["count"], ids["tokens"].size());
  EXPECT_EQ(ids["max_model_len"], 32768);
  EXPECT_EQ(post_and_wait("/detokenize", {{"tokens", ids["tokens"]}})->json()["prompt"], "床前");
}

TEST_F(ApiTest, TheThoughtOfAnAnswerHasEitherName) {
  const auto prompt = [&](const Json& names) {
    Json answer{{"role", "assistant"}, {"content", "b"}};
    answer.update(names);
    return post_and_wait("/apply-template", {{"messages", {from_user, answer, from_user}}});
  };
  const std::string expected = prompt({{"reasoning_content", "because"}})->body();
  EXPECT_EQ(prompt({{"reasoning", "because"}})->body(), expected);
  EXPECT_EQ(prompt({{"reasoning", "because"}, {"reasoning_content", "because"}})->body(), expected);
  EXPECT_EQ(prompt({{"reasoning", nullptr}, {"reasoning_content", "because"}})->body(), expected);
  EXPECT_EQ(prompt({{"reasoning", "so"}, {"reasoning_content", "because"}})->status(), 400);
}

TEST_F(ApiTest, GivesTheTextOfGenerateUnderAnyLoad) {
  std::vector<std::shared_ptr<FakeAnswer>> answers;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const Json body{{"prompt", seed % 2 == 0 ? "床前明月光，" : "江上"},
                    {"seed", seed},
                    {"max_tokens", 5 + seed},
                    {"stream", seed % 3 == 0}};
    answers.push_back(post("/v1/completions", body.dump()));
    if (seed % 5 == 4) answers.push_back(post("/v1/completions", body.dump())), answers.back()->disconnect();
  }
  std::uint64_t seed = 0;
  for (const auto& answer : answers) {
    if (answer->gone()) continue;
    ASSERT_TRUE(answer->wait());
    std::string text;
    if (seed % 3 == 0) {
      for (const Json& event : answer->events()) text += event["choices"][0]["text"].get<std::string>();
    } else {
      text = answer->json()["choices"][0]["text"];
    }
    EXPECT_EQ(text, text_alone(seed % 2 == 0 ? "床前明月光，" : "江上", seed, 5 + seed)) << seed;
    ++seed;
  }
}

TEST_F(ApiTest, GivesSeveralChoicesForSeveralPrompts) {
  const Json json = complete({{"prompt", {"床前明月光，", "江上"}}, {"n", 2}, {"seed", 5}})->json();
  ASSERT_EQ(json["choices"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], text_alone(i < 2 ? "床前明月光，" : "江上", 5 + i, 16));
  }
  const Json ids = complete({{"prompt", {{7, 8, 9}, {10, 11}}}})->json();
  EXPECT_EQ(ids["choices"].size(), 2u);
  EXPECT_EQ(ids["usage"]["prompt_tokens"], 5);
}

TEST_F(ApiTest, ChoosesTheBestTexts) {
  const Json all = complete({{"n", 4}, {"seed", 5}, {"logprobs", 0}})->json();
  std::vector<std::pair<double, std::string>> means;
  for (const Json& choice : all["choices"]) {
    double sum = 0;
    for (const Json& logprob : choice["logprobs"]["token_logprobs"]) sum += logprob.get<double>();
    means.emplace_back(sum / static_cast<double>(choice["logprobs"]["token_logprobs"].size()), choice["text"]);
  }
  std::sort(means.rbegin(), means.rend());
  const Json best = complete({{"n", 2}, {"best_of", 4}, {"seed", 5}})->json();
  ASSERT_EQ(best["choices"].size(), 2u);
  EXPECT_EQ(best["choices"][0]["text"], means[0].second);
  EXPECT_EQ(best["choices"][1]["text"], means[1].second);
  EXPECT_TRUE(best["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(best["usage"]["completion_tokens"], all["usage"]["completion_tokens"]);
}

TEST_F(ApiTest, EchoesThePromptWithItsLogProbabilities) {
  const Json json = complete({{"echo", true}, {"logprobs", 1}, {"max_tokens", 1}, {"temperature", 0}})->json();
  const Json& choice = json["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with("床前明月光，"));
  const std::size_t tokens = json["usage"]["prompt_tokens"].get<std::size_t>() + 1;
  for (const char* const list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs[list].size(), tokens) << list;
  }
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  std::string joined;
  for (const Json& token : logprobs["tokens"]) joined += token.get<std::string>();
  EXPECT_TRUE(joined.starts_with(choice["text"].get<std::string>()));
  for (std::size_t i = 1; i < tokens; ++i) {
    double largest = -INFINITY;
    for (const auto& [token, logprob] : logprobs["top_logprobs"][i].items()) {
      largest = std::max(largest, logprob.get<double>());
    }
    EXPECT_LE(logprobs["token_logprobs"][i].get<double>(), largest);
    if (i + 1 < tokens) continue;
    EXPECT_EQ(logprobs["token_logprobs"][i].get<double>(), largest) << "greedy";
  }
  const Json streamed =
      complete({{"echo", true}, {"logprobs", 1}, {"max_tokens", 1}, {"temperature", 0}, {"stream", true}})->events();
  std::string text;
  Json token_logprobs = Json::array();
  for (const Json& event : streamed) {
    text += event["choices"][0]["text"].get<std::string>();
    if (event["choices"][0]["logprobs"].is_null()) continue;
    for (const Json& logprob : event["choices"][0]["logprobs"]["token_logprobs"]) token_logprobs.push_back(logprob);
  }
  EXPECT_EQ(choice["text"], text);
  EXPECT_EQ(token_logprobs, logprobs["token_logprobs"]);
  Json many{{"prompt", std::vector<int>(1000, 7)}, {"echo", true}, {"logprobs", 5}, {"max_tokens", 1}};
  EXPECT_EQ(complete(many)->status(), 200);
  many["stream"] = true;
  EXPECT_EQ(complete(many)->status(), 400) << "other texts would wait for the event";
  const Json only = complete({{"echo", true}, {"logprobs", 0}, {"max_tokens", 0}})->json();
  EXPECT_EQ(only["choices"][0]["text"], "床前明月光，");
  EXPECT_EQ(only["choices"][0]["logprobs"]["tokens"].size(), tokens - 1);
}

TEST_F(ApiTest, AStreamStartsWithThePromptIfItIsEchoed) {
  const std::vector<Json> events = complete({{"echo", true}, {"stream", true}, {"max_tokens", 3}})->events();
  EXPECT_EQ(events[0]["choices"][0]["text"], "床前明月光，");
  EXPECT_TRUE(events[0]["choices"][0]["logprobs"].is_null());
}

TEST_F(ApiTest, AnswersHaveTheProgramAsTheirSystemFingerprint) {
  const Json body{{"max_tokens", 1}};
  for (const auto& answer : {chat(body), complete(body)}) {
    EXPECT_EQ(answer->json()["system_fingerprint"], "minimind-" MINIMIND_VERSION);
  }
  for (const Json& event : chat({{"max_tokens", 1}, {"stream", true}})->events()) {
    EXPECT_EQ(event["system_fingerprint"], "minimind-" MINIMIND_VERSION);
  }
}

TEST_F(ApiTest, AnAnswerOfAChatHasItsServiceTier) {
  EXPECT_EQ(chat({{"max_tokens", 1}, {"service_tier", "auto"}})->json()["service_tier"], "default");
  EXPECT_FALSE(complete({{"max_tokens", 1}})->json().contains("service_tier"));
}

TEST_F(ApiTest, GivesTheLogProbabilitiesOfAChat) {
  const Json body{{"seed", 3}, {"logprobs", true}, {"top_logprobs", 3}};
  const Json choice = chat(body)->json()["choices"][0];
  std::string joined;
  for (const Json& token : choice["logprobs"]["content"]) {
    EXPECT_EQ(token["top_logprobs"].size(), 3u);
    EXPECT_LE(token["logprob"].get<double>(), 0);
    for (const Json& byte : token["bytes"]) joined += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(choice["message"]["content"], joined);
  Json streaming = body;
  streaming["stream"] = true;
  Json content = Json::array();
  for (const Json& event : chat(streaming)->events()) {
    if (event["choices"][0]["logprobs"].is_null()) continue;
    for (const Json& token : event["choices"][0]["logprobs"]["content"]) content.push_back(token);
  }
  EXPECT_EQ(content, choice["logprobs"]["content"]);
}

TEST_F(ApiTest, SchemasHaveIntegersOfMoreThan64BitsAndNothingElse) {
  const std::string number = "-123456789012345678901234567890";
  const auto text = [&](const std::string& member) {
    const auto answer = post("/v1/completions", R"({"prompt": "江", "max_tokens": 60, )" + member + "}");
    EXPECT_TRUE(answer->wait());
    return answer->status() == 200 ? answer->json()["choices"][0]["text"] : answer->json()["error"]["message"];
  };
  EXPECT_EQ(text(R"("guided_json": {"const": )" + number + "}"), number);
  EXPECT_EQ(text(R"("structured_outputs": {"json": {"enum": [)" + number + "]}}"), number);
  EXPECT_EQ(text(R"("seed": )" + number), "the body: the integer " + number + " does not fit in 64 bits with a sign");
}

TEST_F(ApiTest, ForcesACallThatIsValid) {
  const Json tools = Json::parse(R"([
      {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
       "properties": {"city": {"$ref": "#/$defs/city"}}, "required": ["city"],
       "$defs": {"city": {"enum": ["北京", "上海"]}}}}},
      {"type": "function", "function": {"name": "now"}}])");
  std::set<std::string> ids;
  for (const bool stream : {false, true}) {
    const Json named{{"type", "function"}, {"function", {{"name", "weather"}}}};
    for (const Json& choice : {named, Json("required")}) {
      const auto answer = chat({{"tools", tools},
                                {"tool_choice", choice},
                                {"parallel_tool_calls", false},
                                {"stream", stream},
                                {"max_tokens", 60}});
      ASSERT_EQ(answer->status(), 200) << answer->body();
      Json call;
      if (stream) {
        const std::vector<Json> events = answer->events();
        for (const Json& event : events) {
          const Json& delta = event["choices"][0]["delta"];
          if (!delta.contains("tool_calls")) continue;
          const Json& part = delta["tool_calls"][0];
          EXPECT_EQ(part["index"], 0) << answer->body();
          EXPECT_EQ(part.contains("id"), call.is_null()) << answer->body();
          if (call.is_null()) {
            call = part;
          } else {
            auto& arguments = call["function"]["arguments"].get_ref<std::string&>();
            arguments += part["function"]["arguments"].get<std::string>();
          }
        }
        EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "tool_calls");
      } else {
        const Json its = answer->json()["choices"][0];
        EXPECT_EQ(its["finish_reason"], "tool_calls") << its;
        EXPECT_TRUE(its["message"]["content"].is_null());
        call = its["message"]["tool_calls"][0];
      }
      EXPECT_TRUE(ids.insert(call["id"]).second) << call;
      const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
      EXPECT_TRUE(choice == "required" || call["function"]["name"] == "weather") << call;
      if (call["function"]["name"] == "weather") {
        EXPECT_TRUE(arguments["city"] == "北京" || arguments["city"] == "上海") << arguments;
      }
    }
  }
}

const char* const weather_tool = R"([{"type": "function", "function": {"name": "weather", "strict": true,
    "parameters": {"type": "object", "properties": {"city": {"enum": ["北京", "上海"]}}, "required": ["city"],
                   "additionalProperties": false}}}])";

// Checks that the calls are valid by the schema above, and returns how many there are.
std::size_t check_calls(const Json& message) {
  if (!message.contains("tool_calls")) return 0;
  for (const Json& call : message["tool_calls"]) {
    const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
    EXPECT_EQ(arguments.size(), 1u) << call;
    EXPECT_TRUE(arguments["city"] == "北京" || arguments["city"] == "上海") << call;
  }
  return message["tool_calls"].size();
}

// The finish reason, content, and name and arguments of the calls of an answer or of its stream.
Json calls_of(const FakeAnswer& answer, bool stream) {
  Json found{{"content", ""}, {"calls", Json::array()}};
  const auto add = [&](const Json& message) {
    if (message.contains("content") && message["content"].is_string()) {
      found["content"] = found["content"].get<std::string>() + message["content"].get<std::string>();
    }
    if (!message.contains("tool_calls")) return;
    for (const Json& call : message["tool_calls"]) {
      const Json& its = call["function"];
      if (its.contains("name")) {
        found["calls"].push_back(its);
      } else {
        found["calls"].back()["arguments"].get_ref<std::string&>() += its["arguments"].get<std::string>();
      }
    }
  };
  if (!stream) {
    const Json choice = answer.json()["choices"][0];
    add(choice["message"]);
    found["reason"] = choice["finish_reason"];
    return found;
  }
  for (const Json& event : answer.events()) {
    add(event["choices"][0]["delta"]);
    found["reason"] = event["choices"][0]["finish_reason"];
  }
  return found;
}

Json operator|(Json body, const Json& more) {
  body.update(more);
  return body;
}

TEST_F(ApiTest, KeepsTheArgumentsOfAForcedCallThatIsCutOff) {
  const Json body{
      {"tools", Json::parse(weather_tool)}, {"tool_choice", "required"}, {"parallel_tool_calls", false}, {"seed", 1}};
  std::set<std::string> found;
  constexpr unsigned most = 60;
  for (unsigned tokens = 1; tokens < most; tokens += most / cases(most)) {
    const Json cut = calls_of(*chat(body | Json{{"max_tokens", tokens}}), false);
    EXPECT_EQ(calls_of(*chat(body | Json{{"max_tokens", tokens}, {"stream", true}}), true), cut);
    EXPECT_EQ(cut["content"], "");
    ASSERT_EQ(cut["calls"].size(), 1u) << tokens;
    EXPECT_EQ(cut["calls"][0]["name"], "weather");
    const auto arguments = cut["calls"][0]["arguments"].get<std::string>();
    EXPECT_TRUE(arguments.empty() || arguments.starts_with('{')) << arguments;
    // The last brace of the arguments is not that of the call.
    if (!arguments.ends_with('}')) {
      EXPECT_EQ(cut["reason"], "length");
    } else if (cut["reason"] == "tool_calls") {
      EXPECT_EQ(Json::parse(arguments).size(), 1u);
    }
    if (found.insert(arguments).second) {
      const Json called{{"id", "1"}, {"type", "function"}, {"function", cut["calls"][0]}};
      const auto next = chat({{"messages",
                               {from_user,
                                {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {called}}},
                                {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "Error: invalid JSON"}}}},
                              {"max_tokens", 1}});
      EXPECT_EQ(next->status(), 200) << next->body();
    }
  }
  EXPECT_GT(found.size(), 2u);
}

TEST_F(ApiTest, DropsAForcedCallWithoutAWholeNameIfItMayBeOfSeveralFunctions) {
  Json tools = Json::parse(weather_tool);
  tools.push_back({{"type", "function"}, {"function", {{"name", "now"}}}});
  for (const bool stream : {false, true}) {
    const Json cut =
        calls_of(*chat({{"tools", tools}, {"tool_choice", "required"}, {"max_tokens", 2}, {"stream", stream}}), stream);
    EXPECT_EQ(cut, (Json{{"content", ""}, {"calls", Json::array()}, {"reason", "length"}}));
  }
}

TEST_F(ApiTest, AStopStringEndsAForcedCall) {
  for (const bool stream : {false, true}) {
    const Json cut = calls_of(*chat({{"tools", Json::parse(weather_tool)},
                                     {"tool_choice", "required"},
                                     {"stop", "city"},
                                     {"max_tokens", 150},
                                     {"stream", stream}}),
                              stream);
    EXPECT_EQ(cut["reason"], "stop");
    EXPECT_EQ(cut["content"], "");
    ASSERT_EQ(cut["calls"].size(), 1u);
    EXPECT_TRUE(cut["calls"][0]["arguments"].get<std::string>().ends_with('"')) << cut;
  }
}

TEST_F(ApiTest, CallsFunctionsAsBeforeThereWereTools) {
  const Json functions = Json::array({Json::parse(weather_tool)[0]["function"]});
  Json body{{"functions", functions}, {"function_call", {{"name", "weather"}}}, {"seed", 1}, {"max_tokens", 150}};
  const Json whole = chat(body)->json()["choices"][0];
  EXPECT_EQ(whole["finish_reason"], "function_call") << whole;
  EXPECT_TRUE(whole["message"]["content"].is_null()) << whole;
  EXPECT_FALSE(whole["message"].contains("tool_calls")) << whole;
  const Json call = whole["message"]["function_call"];
  EXPECT_EQ(Json::parse(call["arguments"].get<std::string>()).size(), 1u) << call;

  body["stream"] = true;
  Json streamed{{"name", ""}, {"arguments", ""}};
  const std::vector<Json> events = chat(body)->events();
  for (const Json& event : events) {
    const Json part = event["choices"][0]["delta"].value("function_call", Json::object());
    for (const auto& [name, piece] : part.items()) {
      streamed[name] = streamed[name].get<std::string>() + piece.get<std::string>();
    }
  }
  EXPECT_EQ(streamed, call);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "function_call");

  const Json result{{"role", "function"}, {"name", "weather"}, {"content", "晴"}};
  const Json messages = Json::array({from_user, whole["message"], result});
  const Json answered{{"messages", messages}, {"functions", functions}};
  EXPECT_EQ(chat(answered)->status(), 200) << chat(answered)->body();
}

TEST_F(ApiTest, RequiresOneOrMoreCallsOrExactlyOne) {
  const Json tools = Json::parse(weather_tool);
  std::size_t most = 0, are_whole = 0;
  for (unsigned seed = 0; seed < cases(6, 2); ++seed) {
    Json body{{"tools", tools}, {"tool_choice", "required"}, {"seed", seed}, {"max_tokens", 150}};
    Json several = chat(body)->json()["choices"][0];
    const bool is_cut = several["finish_reason"] == "length";
    if (is_cut) several["message"]["tool_calls"].erase(several["message"]["tool_calls"].size() - 1);
    EXPECT_EQ(several["finish_reason"], is_cut ? "length" : "tool_calls");
    are_whole += !is_cut;
    const std::size_t calls = check_calls(several["message"]);
    EXPECT_GE(calls, 1u) << several;
    EXPECT_TRUE(several["message"]["content"].is_null()) << several;
    most = std::max(most, calls);
    body["parallel_tool_calls"] = false;
    const Json single = chat(body)->json()["choices"][0];
    EXPECT_EQ(check_calls(single["message"]), 1u) << single;
    EXPECT_EQ(single["finish_reason"], "tool_calls");
  }
  EXPECT_GT(most, 1u);
  EXPECT_GT(are_whole, 0u);
}

TEST_F(ApiTest, KeepsCallsOfAStrictFunctionValidIfTheModelMakesThem) {
  const std::int32_t mark = *demo_model().tokenizer().id_of("<tool_call>");
  Json body{{"tools", Json::parse(weather_tool)}, {"seed", 1}, {"max_tokens", 60}};
  EXPECT_EQ(check_calls(chat(body)->json()["choices"][0]["message"]), 0u);
  body["logit_bias"] = {{std::to_string(mark), 100}};
  EXPECT_EQ(check_calls(chat(body)->json()["choices"][0]["message"]), 1u);
  body["tools"][0]["function"]["strict"] = "yes";
  EXPECT_EQ(chat(body)->json()["error"]["param"], "tools");
}

// The answer that `start` begins with what submits texts and the answer, in which the model writes `text`.
template <class Start>
std::shared_ptr<FakeAnswer> scripted_answer(const std::string& text, const Start& start) {
  const TextModel& model = demo_model();
  std::vector<std::int32_t> tokens = model.tokenizer().encode_with_special(text);
  tokens.push_back(model.llm().end_tokens().front());
  std::vector<float> forced(model.llm().config.vocab_size);
  TextQueue queue(model.llm(),
                  {.parallel = 1, .kv_memory = std::size_t{64} << 20, .step_tokens = 64, .longest_step = 2});
  const auto submit = [&](std::vector<TextJob> jobs) {
    auto task = std::make_shared<GenerationTask>(*jobs.front().task);
    task->options.process = [&, start = task->prompt.size()](std::span<const std::int32_t> so_far,
                                                             std::span<const float>) -> std::span<const float> {
      std::ranges::fill(forced, 0.0F);
      forced[static_cast<std::size_t>(tokens[so_far.size() - start])] = 1;
      return forced;
    };
    jobs.front().task = std::move(task);
    queue.submit(std::move(jobs));
  };
  auto answer = std::make_shared<FakeAnswer>();
  start(submit, answer);
  while (queue.texts() > 0) queue.step();
  EXPECT_TRUE(answer->has_ended());
  return answer;
}

std::uint64_t seed_one(std::size_t) {
  return 1;
}

// Of a chat with a function `f`, in `more` or as a tool.
std::shared_ptr<FakeAnswer> scripted_chat(const std::string& text, bool stream, const Json& more = Json::object()) {
  Json body = more | Json{{"messages", {{{"role", "user"}, {"content", "天气"}}}},
                          {"stream", stream},
                          {"max_tokens", 200},
                          {"temperature", 0}};
  if (!more.contains("functions")) body["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  return scripted_answer(text, [&](const SubmitTexts& submit, const std::shared_ptr<FakeAnswer>& answer) {
    const RequestDefaults defaults = options().defaults;
    Completion::start(demo_model(), submit, read_request(body, true, defaults), seed_one, answer);
  });
}

TEST_F(ApiTest, OllamaGeneratesCallsThatAModelWritesUnasked) {
  const std::string call = "好<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"北京\"}}\n</tool_call>";
  for (const bool stream : {true, false}) {
    const Json body{{"model", "minimind"},
                    {"prompt", "天气"},
                    {"stream", stream},
                    {"options", {{"temperature", 0}, {"num_predict", 200}}}};
    const auto answer = scripted_answer(call, [&](const SubmitTexts& submit, const std::shared_ptr<FakeAnswer>& to) {
      start_ollama(
          OllamaRoute::generate, demo_model(), submit, body, options().defaults, seed_one, [](const auto&) {}, to);
    });
    std::string text;
    Json calls = Json::array();
    std::istringstream lines(answer->body());
    for (std::string line; std::getline(lines, line);) {
      const Json piece = Json::parse(line);
      text += piece["response"].get<std::string>();
      for (const Json& written : piece.value("tool_calls", Json::array())) calls.push_back(written["function"]);
    }
    EXPECT_EQ(text, "好");
    EXPECT_EQ(calls, Json::array({{{"index", 0}, {"name", "f"}, {"arguments", {{"city", "北京"}}}}}));
  }
}

TEST_F(ApiTest, StreamsTheArgumentsOfCallsThatNothingConstrains) {
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"北京\", \"days\": [1, 2]}}\n</tool_call>";
  const std::string no_call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"北京\"}, \"when\": 1}\n</tool_call>";
  for (const std::string& text : {call, call + "\n" + call, "好：" + call + "\n" + no_call, no_call, no_call + " 好"}) {
    const Json whole = scripted_chat(text, false)->json()["choices"][0];
    const Json& message = whole["message"];
    std::string content;
    std::vector<std::string> arguments;
    std::size_t deltas = 0;
    const std::vector<Json> events = scripted_chat(text, true)->events();
    for (const Json& event : events) {
      const Json& delta = event["choices"][0]["delta"];
      content += delta.value("content", "");
      if (!delta.contains("tool_calls")) continue;
      const Json& part = delta["tool_calls"][0];
      arguments.resize(std::max(arguments.size(), part["index"].get<std::size_t>() + 1));
      arguments[part["index"]] += part["function"]["arguments"].get<std::string>();
      ++deltas;
    }
    EXPECT_EQ(events.back()["choices"][0]["finish_reason"], whole["finish_reason"]) << text;
    EXPECT_EQ(content, message["content"].is_null() ? "" : message["content"].get<std::string>()) << text;
    EXPECT_GT(deltas, 4 * arguments.size()) << text;
    const std::size_t calls = message.contains("tool_calls") ? message["tool_calls"].size() : 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (i < calls) {
        EXPECT_EQ(arguments[i], message["tool_calls"][i]["function"]["arguments"]);
      } else {
        EXPECT_EQ(arguments[i], "{\"city\": \"北京\"");
      }
    }
  }
  ResponseItems items([](std::string_view, const std::string&) {});
  AnswerParser parser(ThinkState::none, true);
  std::vector<AnswerEvent> events;
  for (const char c : no_call) parser.push({&c, 1}, events);
  parser.finish(events);
  for (const AnswerEvent& event : events) items.add(event, Json::array());
  items.finish(false, false);
  ASSERT_EQ(items.items().size(), 2U);
  EXPECT_EQ(Json::parse(items.items()[0].json)["status"], "incomplete");
  EXPECT_EQ(Json::parse(items.items()[1].json)["content"][0]["text"], no_call);
}

TEST_F(ApiTest, AStreamHasAFunctionCallOnlyIfTheAnswerHasIt) {
  const Json functions{{"functions", {{{"name", "f"}}}}};
  const std::string start = "好<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"北京\"}";
  for (const std::string& text : {start + "}\n</tool_call>", start + ", \"when\": 1}\n</tool_call>"}) {
    const Json whole = scripted_chat(text, false, functions)->json()["choices"][0];
    const Json none{{"name", ""}, {"arguments", ""}};
    Json call = none;
    std::string content;
    const std::vector<Json> events = scripted_chat(text, true, functions)->events();
    for (const Json& event : events) {
      const Json& delta = event["choices"][0]["delta"];
      content += delta.value("content", "");
      const Json part = delta.value("function_call", Json::object());
      for (const auto& [key, piece] : part.items()) call[key] = call[key].get<std::string>() + piece.get<std::string>();
    }
    EXPECT_EQ(call, whole["message"].value("function_call", none)) << whole;
    EXPECT_EQ(content, whole["message"]["content"]);
    EXPECT_EQ(events.back()["choices"][0]["finish_reason"], whole["finish_reason"]);
  }
}

TEST_F(ApiTest, TheScoresOfACallAreInItsFirstPieces) {
  const std::string call = "好<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  const auto tokens_of = [](const std::vector<Json>& events) {
    std::string tokens;
    for (const Json& event : events) {
      const Json& logprobs = event["choices"][0]["logprobs"];
      for (const Json& token : logprobs.is_null() ? Json::array() : logprobs["content"]) {
        tokens += token["token"].get<std::string>() + '|';
      }
    }
    return tokens;
  };
  const Json logprobs{{"logprobs", true}};
  EXPECT_EQ(tokens_of(scripted_chat(call, true, logprobs)->events()),
            tokens_of({scripted_chat(call, false, logprobs)->json()}));
}

TEST_F(ApiTest, AStreamEndsWithTheScoresOfTokensThatNoTextHas) {
  const std::string end = std::to_string(demo_model().llm().end_tokens().front());
  const Json body{{"logit_bias", {{end, 1000}}}, {"ignore_eos", true}, {"max_tokens", 3}, {"logprobs", 0}};
  Json tokens = Json::array();
  for (const Json& event : complete(body | Json{{"stream", true}})->events()) {
    if (event["choices"][0]["logprobs"].is_null()) continue;
    for (const Json& token : event["choices"][0]["logprobs"]["tokens"]) tokens.push_back(token);
  }
  EXPECT_EQ(tokens, complete(body)->json()["choices"][0]["logprobs"]["tokens"]);
  EXPECT_EQ(tokens.size(), 3u);
}

TEST_F(ApiTest, CountsTheTokensOfThoughts) {
  const Json usage = chat({{"max_tokens", 8}})->json()["usage"];
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 0);
  const std::string mark = std::to_string(*demo_model().tokenizer().id_of("<think>"));
  const Json thinking = chat({{"max_tokens", 8}, {"logit_bias", {{mark, 100}}}})->json()["usage"];
  EXPECT_EQ(thinking["completion_tokens_details"]["reasoning_tokens"], 8) << thinking;
}

TEST_F(ApiTest, PlainContentHasNoControlTokens) {
  ApiOptions always = options();
  always.defaults.plain_content = true;
  Api plain_api(models, std::move(always));
  const auto prompt_tokens = [](Api& to, const std::string& path, const std::string& content, Json body) {
    auto answer = std::make_shared<FakeAnswer>();
    body["messages"] = {{{"role", "user"}, {"content", content}}};
    to.handle({.method = "POST",
               .path = path,
               .query = "",
               .headers = {{"content-type", "application/json"}},
               .body = body.dump()},
              answer);
    EXPECT_TRUE(answer->wait());
    const Json json = answer->json();
    return path == "/api/chat" ? json["prompt_eval_count"] : json["usage"]["prompt_tokens"];
  };
  const Json chat_body{{"max_tokens", 1}}, plain_body{{"max_tokens", 1}, {"plain_content", true}};
  const Json ollama_body{{"model", "minimind-poet"}, {"stream", false}, {"options", {{"num_predict", 1}}}};
  const std::string chats = "/v1/chat/completions", ollama = "/api/chat", hostile = "<|im_end|>";
  EXPECT_EQ(prompt_tokens(api, chats, "江上", plain_body), prompt_tokens(api, chats, "江上", chat_body));
  const Json plain = prompt_tokens(api, chats, hostile, plain_body);
  EXPECT_GT(plain.get<int>(), prompt_tokens(api, chats, hostile, chat_body).get<int>());
  EXPECT_EQ(prompt_tokens(plain_api, chats, hostile, chat_body), plain);
  EXPECT_EQ(prompt_tokens(plain_api, ollama, hostile, ollama_body), plain);
  EXPECT_LT(prompt_tokens(api, ollama, hostile, ollama_body).get<int>(), plain.get<int>());
}

TEST_F(ApiTest, GoesOnAfterAnEndTokenIfItIsIgnored) {
  const Json usage = chat({{"max_tokens", 200}, {"ignore_eos", true}})->json()["usage"];
  EXPECT_EQ(usage["completion_tokens"], 200);
}

TEST_F(ApiTest, KeepsToAResponseFormat) {
  const Json schema{{"type", "object"},
                    {"properties", {{"n", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}}}},
                    {"required", {"n"}}};
  const Json format{{"type", "json_schema"},
                    {"json_schema", {{"name", "number"}, {"schema", schema}, {"strict", true}}}};
  const Json choice = chat({{"response_format", format}})->json()["choices"][0];
  const Json value = Json::parse(choice["message"]["content"].get<std::string>());
  EXPECT_GE(value["n"].get<int>(), 1);
  EXPECT_EQ(chat({{"grammar", R"(root ::= "yes" | "no")"}, {"stream", true}})->status(), 200);
  const Json text = complete({{"grammar", R"(root ::= "yes" | "no")"}})->json()["choices"][0]["text"];
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  EXPECT_EQ(complete({{"structured_outputs", {{"regex", "[xy]\\b"}}}})->json()["choices"][0]["text"].dump().size(), 3u);
  for (const Json& params : {Json{{"regex", "ab"}}, Json{{"ebnf", "root ::= \"ab\""}}}) {
    EXPECT_EQ(post_and_wait("/generate", {{"text", "a"}, {"sampling_params", params}})->json()["text"], "ab");
  }
  const Json schema_text{{"json_schema", R"({"const": 1})"}};
  EXPECT_EQ(post_and_wait("/generate", {{"text", "a"}, {"sampling_params", schema_text}})->json()["text"], "1");
  const Json both{{"regex", "a"}, {"ebnf", "root ::= \"a\""}};
  EXPECT_EQ(post_and_wait("/generate", {{"text", "a"}, {"sampling_params", both}})->json()["error"]["param"],
            "sampling_params.ebnf");
}

Json format_of(Json schema) {
  return {{"type", "json_schema"}, {"json_schema", {{"schema", std::move(schema)}}}};
}

TEST_F(ApiTest, EndsATextWhoseSchemaTakesTooMuchWorkOnItsTokens) {
  std::string set;
  for (unsigned c = 0x20000; c < 0x2F000; c += 2) set += fmt::format("\\u{{{:X}}}", c);
  const auto answer = chat({{"response_format", format_of({{"type", "string"}, {"pattern", "^[" + set + "]*$"}})}});
  EXPECT_EQ(answer->status(), 400);
  EXPECT_NE(answer->body().find("steps to work out"), std::string::npos) << answer->body();
  EXPECT_EQ(chat({{"response_format", format_of({{"const", 7}})}})->status(), 200);
}

TEST_F(ApiTest, SaysInOllamasWayWhyATextEnds) {
  std::string set;
  for (unsigned c = 0x20000; c < 0x2F000; c += 2) set += fmt::format("\\u{{{:X}}}", c);
  for (const bool stream : {false, true}) {
    const auto answer = post_and_wait(
        "/api/generate",
        {{"model", "minimind"},
         {"prompt", "a"},
         {"stream", stream},
         {"format", {{"type", "array"}, {"items", {{"type", "string"}, {"pattern", "^[" + set + "]*$"}}}}},
         {"options", {{"num_predict", 20}}}});
    EXPECT_NE(answer->body().find("\"error\""), std::string::npos) << answer->body();
    EXPECT_NE(answer->body().find("steps to work out"), std::string::npos) << answer->body();
  }
}

// The typed events of a stream; checks their numbers and that each names its type twice.
std::vector<Json> typed_events(const std::string& body) {
  std::vector<Json> events;
  std::istringstream lines(body);
  for (std::string type, data, empty; std::getline(lines, type) && std::getline(lines, data);) {
    std::getline(lines, empty);
    events.push_back(Json::parse(data.substr(std::string_view("data: ").size())));
    EXPECT_EQ(type, "event: " + events.back()["type"].get<std::string>());
    EXPECT_EQ(events.back()["sequence_number"], events.size() - 1);
  }
  return events;
}

TEST_F(ApiTest, GivesAResponseWithTheTextOfAChat) {
  const Json messages{{{"role", "system"}, {"content", "s"}}, {{"role", "user"}, {"content", "江上"}}};
  const Json expected = chat({{"messages", messages}, {"seed", 3}, {"logprobs", true}})->json();
  const Json body{{"instructions", "s"}, {"input", "江上"}, {"seed", 3}, {"include", {"message.output_text.logprobs"}}};
  const Json whole = post_and_wait("/v1/responses", body)->json();
  EXPECT_TRUE(whole["id"].get<std::string>().starts_with("resp_")) << whole;
  EXPECT_EQ(whole["object"], "response");
  ASSERT_EQ(whole["output"].size(), 1u) << whole;
  const Json& part = whole["output"][0]["content"][0];
  EXPECT_EQ(part["text"], expected["choices"][0]["message"]["content"]);
  EXPECT_EQ(part["logprobs"], expected["choices"][0]["logprobs"]["content"]);
  EXPECT_EQ(whole["usage"]["input_tokens"], expected["usage"]["prompt_tokens"]);
  EXPECT_EQ(whole["usage"]["output_tokens"], expected["usage"]["completion_tokens"]);
  const bool is_cut = expected["choices"][0]["finish_reason"] == "length";
  EXPECT_EQ(whole["status"], is_cut ? "incomplete" : "completed");

  const std::vector<Json> events = typed_events(post_and_wait("/v1/responses", body | Json{{"stream", true}})->body());
  ASSERT_GT(events.size(), 6u);
  EXPECT_EQ(events[0]["type"], "response.created");
  EXPECT_EQ(events[1]["type"], "response.in_progress");
  EXPECT_EQ(events[2]["type"], "response.output_item.added");
  EXPECT_EQ(events[3]["type"], "response.content_part.added");
  std::string text;
  Json logprobs = Json::array();
  for (const Json& event : events) {
    if (event["type"] != "response.output_text.delta") continue;
    text += event["delta"].get<std::string>();
    for (const Json& token : event["logprobs"]) logprobs.push_back(token);
  }
  EXPECT_EQ(part["text"], text);
  EXPECT_EQ(part["logprobs"], logprobs);
  const Json& last = events.back()["response"];
  EXPECT_EQ(events.back()["type"], is_cut ? "response.incomplete" : "response.completed");
  EXPECT_EQ(last["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(last["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
}

// The template of the demo has no memory.
TEST(ResponsesTest, AResponseContinuesAnother) {
  const TemporaryFolder folder;
  ModelShelf::Settings with_memory = settings();
  with_memory.chat_template = folder.path() + "/all.jinja";
  std::ofstream(with_memory.chat_template) << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content "
                                              "}}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";
  ModelShelf shelf(std::move(with_memory));
  Api api(shelf, options());
  const auto ask = [&](const std::string& path, const Json& body) {
    const auto answer = post_to(api, path, body.dump());
    EXPECT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200) << answer->body();
    return answer->json();
  };
  const Json first = ask("/v1/responses", {{"input", "江上"}, {"seed", 3}, {"instructions", "s"}});
  const Json text = first["output"][0]["content"][0]["text"];
  const Json messages{{{"role", "user"}, {"content", "江上"}},
                      {{"role", "assistant"}, {"content", text}},
                      {{"role", "user"}, {"content", "再来"}}};
  const Json expected = ask("/v1/chat/completions", {{"messages", messages}, {"seed", 4}});
  const Json second = ask("/v1/responses", {{"input", "再来"}, {"seed", 4}, {"previous_response_id", first["id"]}});
  EXPECT_EQ(second["output"][0]["content"][0]["text"], expected["choices"][0]["message"]["content"]) << second;
  EXPECT_EQ(second["usage"]["input_tokens"], expected["usage"]["prompt_tokens"]) << "without the instructions";
  EXPECT_GT(second["usage"]["input_tokens"].get<int>(), first["usage"]["output_tokens"].get<int>());
  EXPECT_EQ(second["previous_response_id"], first["id"]);
  const Json asked{{"role", "user"}, {"content", "江上"}}, again{{"role", "user"}, {"content", "再来"}};
  const Json reference{{"type", "item_reference"}, {"id", first["output"][0]["id"]}};
  const Json referring = ask("/v1/responses", {{"input", {asked, reference, again}}, {"seed", 4}});
  EXPECT_EQ(referring["output"][0]["content"][0]["text"], second["output"][0]["content"][0]["text"]);
  EXPECT_EQ(referring["usage"]["input_tokens"], second["usage"]["input_tokens"]);
  const Json third = ask("/v1/responses", {{"input", "a"}, {"previous_response_id", second["id"]}});
  EXPECT_GT(third["usage"]["input_tokens"].get<int>(), second["usage"]["total_tokens"].get<int>());
  const Json same = ask("/v1/responses", {{"input", messages}, {"seed", 4}, {"store", false}});
  EXPECT_EQ(same["output"][0]["content"][0]["text"], second["output"][0]["content"][0]["text"]);
  const auto unknown = post_to(api, "/v1/responses", Json{{"input", "a"}, {"previous_response_id", same["id"]}}.dump());
  ASSERT_TRUE(unknown->wait());
  EXPECT_EQ(unknown->json()["error"]["code"], "previous_response_not_found");
}

TEST_F(ApiTest, AResponseCallsFunctionsAndKeepsToAFormat) {
  const Json tool =
      Json::parse(R"({"type": "function", "name": "weather", "strict": true, "parameters": {"type": "object",
      "properties": {"city": {"enum": ["北京", "上海"]}}, "required": ["city"], "additionalProperties": false}})");
  for (const bool stream : {false, true}) {
    const Json body{{"input", "a"},
                    {"tools", {tool}},
                    {"tool_choice", {{"type", "function"}, {"name", "weather"}}},
                    {"include", {"message.output_text.logprobs"}},
                    {"max_output_tokens", 60},
                    {"stream", stream}};
    const auto answer = post_and_wait("/v1/responses", body);
    const Json response = stream ? typed_events(answer->body()).back()["response"] : answer->json();
    ASSERT_EQ(response["output"].size(), 1u) << answer->body();
    const Json& call = response["output"][0];
    EXPECT_EQ(call["type"], "function_call");
    EXPECT_EQ(call["name"], "weather");
    EXPECT_EQ(call["status"], "completed");
    EXPECT_EQ(Json::parse(call["arguments"].get<std::string>()).size(), 1u) << call;
    if (stream) {
      std::vector<std::string> deltas;
      for (const Json& event : typed_events(answer->body())) {
        if (event["type"] == "response.function_call_arguments.delta") deltas.push_back(event["delta"]);
      }
      EXPECT_GT(deltas.size(), 2u) << "they come with the text";
      EXPECT_EQ(std::accumulate(deltas.begin(), deltas.end(), std::string()), call["arguments"]);
    }
    const auto cut = post_and_wait("/v1/responses", body | Json{{"max_output_tokens", 14}});
    const Json cut_response = stream ? typed_events(cut->body()).back()["response"] : cut->json();
    EXPECT_EQ(cut_response["status"], "incomplete");
    EXPECT_EQ(cut_response["output"][0]["status"], "incomplete") << cut->body();
    for (const Json& called : {response, cut_response}) {
      const Json& id = called["output"][0]["call_id"];
      const Json result{{"type", "function_call_output"}, {"call_id", id}, {"output", "晴"}};
      const auto next = post_and_wait("/v1/responses",
                                      {{"input", {result}}, {"previous_response_id", called["id"]}, {"tools", {tool}}});
      EXPECT_EQ(next->status(), 200) << next->body();
      const auto again = post_and_wait("/v1/responses", {{"input", {from_user, called["output"][0], result}}});
      EXPECT_EQ(again->status(), 200) << again->body();
    }
  }
  const Json format{{"type", "json_schema"}, {"name", "n"}, {"strict", true}, {"schema", {{"const", 7}}}};
  const Json number = post_and_wait("/v1/responses", {{"input", "a"}, {"text", {{"format", format}}}})->json();
  EXPECT_EQ(number["output"][0]["content"][0]["text"], "7") << number;
}

TEST_F(ApiTest, AResponseTakesWhatAChatTakes) {
  const auto ask = [&](const Json& fields) {
    const auto answer = post_and_wait("/v1/responses", Json{{"input", "a"}, {"max_output_tokens", 60}} | fields);
    EXPECT_EQ(answer->status(), 200) << answer->body();
    return answer->json()["output"][0];
  };
  const auto tool = [](const char* name) {
    return Json{{"type", "function"}, {"name", name}, {"parameters", {{"const", Json::object()}}}};
  };
  const Json allowed{
      {"type", "allowed_tools"}, {"mode", "required"}, {"tools", {{{"type", "function"}, {"name", "second"}}}}};
  const Json call = ask({{"tools", {tool("first"), tool("second")}}, {"tool_choice", allowed}});
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "second");
  const Json message = ask({{"guided_regex", "7"}, {"cache_prompt", true}, {"keep_alive", "5m"}});
  EXPECT_EQ(message["content"][0]["text"], "7");
}

TEST_F(ApiTest, AResponseRepeatsTheKnownSettingsAlone) {
  const Json given = Json::parse(R"({"input": "a", "text": {"verbosity": "low", "other": null}, "reasoning":
      {"generate_summary": "auto", "other": null, "effort": "none"}})");
  const Json response = post_and_wait("/v1/responses", given)->json();
  EXPECT_EQ(response["text"].dump(), R"({"format":{"type":"text"},"verbosity":"low"})");
  EXPECT_EQ(response["reasoning"].dump(), R"({"effort":"none","summary":null,"generate_summary":"auto"})");
  const Json none = Json::parse(R"({"input": "a", "text": {"format": null}, "reasoning": {"summary": null}})");
  const Json defaults = post_and_wait("/v1/responses", none)->json();
  EXPECT_EQ(defaults["text"].dump(), R"({"format":{"type":"text"}})");
  EXPECT_EQ(defaults["reasoning"].dump(), R"({"effort":null,"summary":null})");
}

TEST_F(ApiTest, AResponseRepeatsItsSettingsInTheirOrderAndForm) {
  const std::string tool = R"({"type": "function", "name": "f", "parameters": {"x": [1e9, 0.10, 7]}})";
  const std::string body =
      R"({"input": "a", "tool_choice": "none", "store": false, "max_output_tokens": 1, "tools": [)" + tool + "]";
  const std::vector<std::string> names{"id",
                                       "object",
                                       "created_at",
                                       "status",
                                       "error",
                                       "incomplete_details",
                                       "model",
                                       "output",
                                       "background",
                                       "instructions",
                                       "max_output_tokens",
                                       "max_tool_calls",
                                       "metadata",
                                       "parallel_tool_calls",
                                       "previous_response_id",
                                       "prompt_cache_key",
                                       "reasoning",
                                       "safety_identifier",
                                       "service_tier",
                                       "store",
                                       "temperature",
                                       "text",
                                       "tool_choice",
                                       "tools",
                                       "top_logprobs",
                                       "top_p",
                                       "truncation",
                                       "user",
                                       "usage"};
  const auto expect = [&](const Json& response) {
    std::vector<std::string> own;
    for (const auto& [name, value] : response.items()) own.push_back(name);
    EXPECT_EQ(own, names);
  };
  const std::string written =
      R"("tools": [{"type": "function", "name": "f", "parameters": {"x": [1000000000.0, 0.1, 7]}}], )";
  const auto whole = post("/v1/responses", body + "}");
  ASSERT_TRUE(whole->wait());
  expect(whole->json());
  EXPECT_EQ(whole->json()["status"], "incomplete");
  EXPECT_EQ(whole->json()["incomplete_details"].dump(), R"({"reason":"max_output_tokens"})");
  EXPECT_NE(whole->body().find(written), std::string::npos) << whole->body();
  const auto stream = post("/v1/responses", body + R"(, "stream": true})");
  ASSERT_TRUE(stream->wait());
  for (const Json& event : typed_events(stream->body())) {
    if (!event.contains("response")) continue;
    expect(event["response"]);
    EXPECT_EQ(event["response"]["tools"], whole->json()["tools"]);
  }
}

// Other texts wait for that thread, which would write the settings four times: numbers that take long to write.
TEST_F(ApiTest, TheEngineWritesNoSettingsOfAResponse) {
  const Json tool{{"type", "function"}, {"name", "f"}, {"parameters", {{"x", std::vector<double>(300'000, 0.1)}}}};
  const Json body{
      {"input", "a"}, {"stream", true}, {"max_output_tokens", 1}, {"tool_choice", "none"}, {"tools", {tool}}};
  double seconds = 0;
  const auto engine_seconds = [&] {
    engine.run_between_steps([&](ContextPool&) { seconds = cpu_seconds(); });
    return seconds;
  };
  const double before = engine_seconds();
  EXPECT_EQ(typed_events(post_and_wait("/v1/responses", body)->body()).back()["response"]["tools"], body["tools"]);
  EXPECT_LT(engine_seconds() - before, 2 * seconds_of([&] { json_line(body); }));  // copies of the text take time, too
}

TEST_F(ApiTest, AResponseHasThoughtsInTheirOwnItem) {
  const std::string mark = std::to_string(*demo_model().tokenizer().id_of("<think>"));
  const Json body{{"input", "a"}, {"max_output_tokens", 8}, {"logit_bias", {{mark, 3}}}, {"seed", 1}};
  for (const bool stream : {false, true}) {
    const auto answer = post_and_wait("/v1/responses", body | Json{{"stream", stream}});
    const Json response = stream ? typed_events(answer->body()).back()["response"] : answer->json();
    EXPECT_FALSE(response["output"].empty()) << answer->body();
    for (const Json& item : response["output"]) {
      EXPECT_TRUE(item["type"] == "reasoning" || item["type"] == "message") << item;
    }
  }
}

// An API whose answers may start with a thought, of a model that says what it is told to.
class ThinkingApiTest : public testing::Test {
 protected:
  static constexpr const char* source =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n"
      "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
      "{{ m.content }}<|im_end|>\n{% endfor %}{% if tools %}{{ tools }}{% endif %}<|im_start|>assistant\n"
      "{% if open_thinking %}<think>\n{% endif %}";

  static ModelShelf::Settings thinking_settings(const TemporaryFolder& folder) {
    ModelShelf::Settings thinking = settings();
    thinking.chat_template = folder.write("template.jinja", source);
    return thinking;
  }
  // Every answer is this text, whose tokens all differ: each has a larger bias than the next one, and none comes twice.
  static ApiOptions saying(const std::string& text) {
    ApiOptions own = options();
    std::vector<std::int32_t> tokens = demo_model().tokenizer().encode_with_special(text);
    tokens.push_back(demo_model().llm().end_tokens().front());
    SamplingOptions& sampling = own.defaults.parameters.sampling;
    sampling.temperature = 0;
    sampling.presence_penalty = largest_term;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sampling.logit_bias.push_back({tokens[i], 1000.0 * static_cast<double>(tokens.size() - i)});
    }
    return own;
  }
  std::shared_ptr<FakeAnswer> ask(const std::string& path, const Json& body) {
    auto answer = post_to(*api, path, body.dump());
    EXPECT_TRUE(answer->wait()) << body;
    EXPECT_EQ(answer->status(), 200) << answer->body();
    return answer;
  }

  const TemporaryFolder folder;
  ModelShelf models{thinking_settings(folder)};
  std::optional<Api> api{std::in_place, models, saying("嗯，思</think>好。")};
};

TEST_F(ThinkingApiTest, AChatHasTheThoughtInItsOwnField) {
  const Json body{{"messages", {from_user}}, {"enable_thinking", true}, {"logprobs", true}};
  const Json whole = ask("/v1/chat/completions", body)->json();
  EXPECT_EQ(whole["choices"][0]["message"]["reasoning_content"], "嗯，思");
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "好。");
  const std::size_t tokens = demo_model().tokenizer().encode_with_special("嗯，思</think>").size();
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], tokens);
  std::string thought, content;
  for (const Json& event : ask("/v1/chat/completions", body | Json{{"stream", true}})->events()) {
    const Json& delta = event["choices"][0]["delta"];
    thought += delta.value("reasoning_content", "");
    content += delta.value("content", "");
  }
  EXPECT_EQ(thought, "嗯，思");
  EXPECT_EQ(content, "好。");
}

TEST_F(ThinkingApiTest, AResponseHasTheThoughtInAnItemBeforeTheMessage) {
  const Json body{{"input", "a"}, {"reasoning", {{"effort", "low"}}}};
  const Json response = ask("/v1/responses", body)->json();
  const auto check = [](const Json& output) {
    ASSERT_EQ(output.size(), 2u) << output;
    EXPECT_TRUE(output[0]["id"].get<std::string>().starts_with("rs_"));
    EXPECT_EQ(output[0]["type"], "reasoning");
    EXPECT_EQ(output[0]["summary"], Json::array());
    EXPECT_EQ(output[0]["content"], Json::parse(R"([{"type": "reasoning_text", "text": "嗯，思"}])"));
    EXPECT_EQ(output[1]["content"][0]["text"], "好。");
  };
  check(response["output"]);
  EXPECT_GT(response["usage"]["output_tokens_details"]["reasoning_tokens"], 0);
  const std::vector<Json> events = typed_events(ask("/v1/responses", body | Json{{"stream", true}})->body());
  check(events.back()["response"]["output"]);
  std::map<std::string, std::string> texts;
  for (const Json& event : events) {
    if (event.contains("delta")) texts[event["type"]] += event["delta"].get<std::string>();
    if (event.contains("text")) texts[event["type"]] = event["text"];
  }
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"response.reasoning_text.delta", "嗯，思"},
                                                       {"response.reasoning_text.done", "嗯，思"},
                                                       {"response.output_text.delta", "好。"},
                                                       {"response.output_text.done", "好。"}}));

  const Json next = ask("/v1/responses", {{"input", "b"}, {"previous_response_id", response["id"]}})->json();
  const Json answer{{"role", "assistant"}, {"content", "好。"}, {"reasoning_content", "嗯，思"}};
  const Json messages{{{"role", "user"}, {"content", "a"}}, answer, {{"role", "user"}, {"content", "b"}}};
  EXPECT_EQ(next["usage"]["input_tokens"],
            ask("/v1/chat/completions", {{"messages", messages}})->json()["usage"]["prompt_tokens"]);
  const auto items = get_from(*api, "/v1/responses/" + next["id"].get<std::string>() + "/input_items");
  ASSERT_TRUE(items->wait());
  EXPECT_EQ(items->json()["data"][2], response["output"][0]) << items->body();
}

TEST_F(ThinkingApiTest, LogprobsOfTokensThatNoTextHasAreKept) {
  api.emplace(models, saying("<think></think>"));
  const Json fields{{"logprobs", true}, {"messages", {from_user}}};
  const Json logprobs = ask("/v1/chat/completions", fields)->json()["choices"][0]["logprobs"]["content"];
  EXPECT_EQ(logprobs.size(), 2u);
  Json streamed = Json::array();
  for (const Json& event : ask("/v1/chat/completions", fields | Json{{"stream", true}})->events()) {
    if (event["choices"][0]["logprobs"].is_null()) continue;
    for (const Json& token : event["choices"][0]["logprobs"]["content"]) streamed.push_back(token);
  }
  EXPECT_EQ(streamed, logprobs);
  const Json body{{"input", {from_user}}, {"include", {"message.output_text.logprobs"}}};
  const Json response = ask("/v1/responses", body)->json();
  ASSERT_EQ(response["output"].size(), 1u) << response;
  EXPECT_EQ(response["output"][0]["content"][0]["logprobs"], logprobs);
}

TEST_F(ThinkingApiTest, OllamasRoutesHaveTheThoughtInItsOwnField) {
  for (const auto& [path, more] :
       {std::pair<std::string, Json>{"/api/chat", {{"messages", {from_user}}}}, {"/api/generate", {{"prompt", "a"}}}}) {
    for (const bool stream : {true, false}) {
      const Json body{{"model", "minimind"}, {"think", true}, {"stream", stream}};
      std::istringstream lines(ask(path, body | more)->body());
      std::string thought, text;
      for (std::string line; std::getline(lines, line);) {
        const Json parsed = Json::parse(line);
        const bool is_chat = path == "/api/chat";
        const Json& message = is_chat ? parsed["message"] : parsed;
        thought += message.value("thinking", "");
        text += message[is_chat ? "content" : "response"].get<std::string>();
      }
      EXPECT_EQ(thought, "嗯，思") << path << stream;
      EXPECT_EQ(text, "好。") << path << stream;
    }
  }
  EXPECT_EQ(ask("/api/show", {{"model", "minimind"}})->json()["capabilities"],
            Json::parse(R"(["completion", "tools", "thinking"])"));
  const auto models_list = get_from(*api, "/v1/models");
  ASSERT_TRUE(models_list->wait());
  EXPECT_EQ(models_list->json()["data"][0]["capabilities"]["function_calling"], true);
}

TEST(ResponseStoreTest, KeepsTheLatestConversations) {
  ResponseStore store;
  const auto has = [&](const std::string& id) {
    try {
      store.find(id, "response_id");
      return true;
    } catch (const RequestError& error) {
      EXPECT_EQ(error.status(), 404);
      return false;
    }
  };
  const StoredResponse large{std::string(ResponseStore::most_bytes / 8 * 3, 'a'), std::string(1000, 'b')};
  store.add("a", large);
  store.add("b", large);
  EXPECT_EQ(store.find("a", "")->response, large.response);
  EXPECT_EQ(store.find("a", "")->input, large.input);
  store.add("c", large);
  EXPECT_FALSE(has("a"));
  EXPECT_TRUE(has("b"));
  store.remove("b");
  store.add("d", large);
  EXPECT_TRUE(has("c")) << "what is removed takes no room";
  EXPECT_FALSE(has("b"));
  EXPECT_THROW(store.remove("b"), RequestError);
  for (std::size_t i = 0; i < ResponseStore::most_responses; ++i) store.add(std::to_string(i), {"", ""});
  EXPECT_FALSE(has("d"));
  EXPECT_TRUE(has("0"));
  store.add("too large", {"", std::string(ResponseStore::most_bytes / 2 + 1, 'a')});
  EXPECT_FALSE(has("too large"));
  EXPECT_TRUE(has("0")) << "it pushes no other out";
}

TEST(ResponseStoreTest, KeepsTheItemsOfItsResponses) {
  ResponseStore store;
  store.add("a", {"", "", {{"msg_1", "1"}, {"msg_2", "2"}}});
  EXPECT_EQ(store.find_item("msg_2"), "2");
  EXPECT_EQ(store.find_item("msg_3"), std::nullopt);
  store.remove("a");
  EXPECT_EQ(store.find_item("msg_2"), std::nullopt);
  const std::string large(ResponseStore::most_bytes / 8 * 3, 'a');
  for (const char* const id : {"b", "c", "d"}) store.add(id, {"", "", {{std::string("msg_") + id, large}}});
  EXPECT_EQ(store.find_item("msg_b"), std::nullopt) << "items take room, too";
  EXPECT_EQ(store.find_item("msg_c"), large);
}

TEST(ResponseStoreTest, ReferencesTogetherAreLimited) {
  ResponseStore store;
  const Json item{{"type", "message"}, {"role", "assistant"}, {"content", std::string(most_brief_bytes, 'a')}};
  store.add("resp_a", {R"({"output": []})", "[]", {{"msg_a", item.dump()}}});
  Json body{{"input", {{{"role", "user"}, {"content", "b"}}}}};
  const auto read = [&] { return read_response_request(body, {}, store, 3 * most_brief_bytes).input.size(); };
  const auto param_of = [&] {
    try {
      return std::to_string(read());
    } catch (const RequestError& error) {
      return error.param() + ' ' + std::to_string(error.status());
    }
  };
  const auto add = [&](const Json& more) { body["input"].push_back(more); };
  const Json reference{{"type", "item_reference"}, {"id", "msg_a"}}, user{{"role", "user"}, {"content", "c"}};
  for (int i = 0; i < 2; ++i) {
    add(reference);
    add(user);
  }
  EXPECT_GT(read(), 2 * most_brief_bytes);
  {
    const BriefWork brief;
    EXPECT_THROW(read(), LongWork);
  }
  add({{"type", "item_reference"}, {"id", "msg_b"}});
  EXPECT_EQ(param_of(), "input[5].id 400");
  body["input"][5] = reference;
  EXPECT_EQ(param_of(), "input 413");
}

TEST(ResponseStoreTest, ALargeConversationIsContinuedByLongWork) {
  ResponseStore store;
  const std::string text(most_brief_bytes, 'a');
  store.add("resp_a", {R"({"output": []})", Json{{{"role", "user"}, {"content", text}}}.dump()});
  const Json body{{"input", "b"}, {"previous_response_id", "resp_a"}};
  EXPECT_GT(read_response_request(body, {}, store, 2 * text.size()).input.size(), text.size());
  const BriefWork brief;
  EXPECT_THROW(read_response_request(body, {}, store, 2 * text.size()), LongWork);
}

// Each number has three bytes in the body.
TEST(ResponseStoreTest, KeepsNoConversationThatCannotBeReadAgain) {
  const std::vector<double> numbers(max_chat_json_size / 10, 1e9);
  const Json part{{"type", "input_text"}, {"text", "a"}, {"annotations", numbers}};
  Json body{{"input", {{{"role", "user"}, {"content", {part}}}}}};
  try {
    read_response_request(body, {}, {}, 1000);
    ADD_FAILURE() << "it is stored";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400) << error.what();
    EXPECT_EQ(error.param(), "input") << error.what();
  }
  body["store"] = false;
  EXPECT_NO_THROW(read_response_request(body, {}, {}, 1000));
}

TEST_F(ApiTest, KeepsAResponseUntilItIsDeleted) {
  const Json first = post_and_wait("/v1/responses", {{"input", "a"}})->json();
  const Json whole =
      post_and_wait("/v1/responses", {{"input", "b"}, {"previous_response_id", first["id"]}, {"stream", false}})
          ->json();
  const std::string path = "/v1/responses/" + whole["id"].get<std::string>();
  EXPECT_EQ(get(path)->json(), whole);
  const auto with_query = [&](const std::string& where, const std::string& query) {
    auto answer = std::make_shared<FakeAnswer>();
    api.handle({.method = "GET", .path = where, .query = query, .headers = {}, .body = ""}, answer);
    EXPECT_TRUE(answer->wait());
    return answer;
  };
  EXPECT_EQ(with_query(path, "include=x&stream=true")->status(), 400);
  const Json cancelled = post_and_wait(path + "/cancel", Json::object())->json();
  EXPECT_EQ(cancelled["error"]["param"], "response_id") << cancelled;

  const Json items = with_query(path + "/input_items", "order=asc")->json();
  ASSERT_EQ(items["data"].size(), 3u) << items;
  EXPECT_EQ(items["data"][0]["content"], Json::parse(R"([{"type": "input_text", "text": "a"}])"));
  EXPECT_EQ(items["data"][1], first["output"][0]);
  EXPECT_EQ(items["data"][2]["content"][0]["text"], "b");
  EXPECT_EQ(items["has_more"], false);
  const Json last = with_query(path + "/input_items", "limit=1")->json();
  ASSERT_EQ(last["data"].size(), 1u) << last;
  EXPECT_EQ(last["data"][0], items["data"][2]);
  EXPECT_EQ(last["has_more"], true);
  const std::string after = last["last_id"];
  EXPECT_EQ(with_query(path + "/input_items", "after=" + after)->json()["data"],
            Json::array({items["data"][1], items["data"][0]}));
  for (const char* const query : {"limit=0", "limit=101", "limit=a", "order=up", "after=nothing"}) {
    EXPECT_EQ(with_query(path + "/input_items", query)->status(), 400) << query;
  }

  auto deleted = std::make_shared<FakeAnswer>();
  api.handle({.method = "DELETE", .path = path, .query = "", .headers = {}, .body = ""}, deleted);
  ASSERT_TRUE(deleted->wait());
  EXPECT_EQ(deleted->json(), (Json{{"id", whole["id"]}, {"object", "response"}, {"deleted", true}}));
  for (const char* const more : {"", "/input_items"}) EXPECT_EQ(get(path + more)->status(), 404) << more;
  EXPECT_EQ(get("/v1/responses/" + first["id"].get<std::string>())->status(), 200) << "the other one stays";
}

TEST_F(ApiTest, AResponseGoesOnAfterACallThatWasCut) {
  const Json tool = Json::parse(R"({"type": "function", "name": "weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string", "minLength": 60}}, "required": ["city"]}})");
  const Json cut =
      post_and_wait("/v1/responses",
                    {{"input", "a"}, {"tools", {tool}}, {"tool_choice", "required"}, {"max_output_tokens", 20}})
          ->json();
  ASSERT_EQ(cut["output"].back()["type"], "function_call") << cut;
  EXPECT_EQ(cut["output"].back()["status"], "incomplete") << cut;
  const auto next = post_and_wait("/v1/responses", {{"input", "b"}, {"previous_response_id", cut["id"]}});
  EXPECT_EQ(next->status(), 200) << next->body();
  const auto calls_before = [&](FakeAnswer& answer) {
    EXPECT_EQ(answer.status(), 200) << answer.body();
    const auto items = get("/v1/responses/" + answer.json()["id"].get<std::string>() + "/input_items");
    EXPECT_TRUE(items->wait());
    const Json list = items->json()["data"];
    return std::ranges::count_if(list, [](const Json& item) { return item["type"] == "function_call"; });
  };
  EXPECT_EQ(calls_before(*next), 0);
  const Json result{
      {"type", "function_call_output"}, {"call_id", cut["output"].back()["call_id"]}, {"output", "Error: invalid"}};
  EXPECT_EQ(calls_before(*post_and_wait("/v1/responses", {{"input", {result}}, {"previous_response_id", cut["id"]}})),
            1);
}

// The limit ended the text after a call, before it could have made another.
TEST_F(ApiTest, CallsThatHadToComeAreWholeIfTheLastOneIs) {
  const Json function = Json::parse(R"({"name": "weather", "parameters": {"type": "object",
      "properties": {"city": {"enum": ["北京", "上海"]}}, "required": ["city"], "additionalProperties": false}})");
  const Json of_response = function | Json{{"type", "function"}};
  const Json of_chat{{"type", "function"}, {"function", function}};
  const Json choice{{"tool_choice", "required"}};
  std::size_t at_the_limit = 0;
  for (std::size_t most = 20; most < 60; most += 4) {
    const Json answer = chat(choice | Json{{"tools", {of_chat}}, {"max_tokens", most}})->json();
    const Json response =
        post_and_wait("/v1/responses",
                      choice | Json{{"input", "a"}, {"tools", {of_response}}, {"max_output_tokens", most}})
            ->json();
    const Json& last = response["output"].back();
    EXPECT_EQ(response["status"], last["status"]) << response;
    const Json& call = answer["choices"][0]["message"]["tool_calls"].back();
    const bool is_whole = Json::accept(call["function"]["arguments"].get<std::string>());
    EXPECT_EQ(answer["choices"][0]["finish_reason"], is_whole ? "tool_calls" : "length") << answer;
    at_the_limit += is_whole && answer["usage"]["completion_tokens"] == most;
  }
  EXPECT_GT(at_the_limit, 0u);
}

TEST_F(ApiTest, CountsTheTokensOfAResponsesInput) {
  const Json body{{"input", "江上"}, {"instructions", "s"}};
  const Json counted = post_and_wait("/v1/responses/input_tokens", body)->json();
  EXPECT_EQ(counted["object"], "response.input_tokens") << counted;
  EXPECT_EQ(counted["input_tokens"], post_and_wait("/v1/responses", body)->json()["usage"]["input_tokens"]);
  EXPECT_EQ(post_and_wait("/v1/responses/input_tokens", {{"input", 1}})->json()["error"]["param"], "input");
}

TEST_F(ApiTest, ListsTheModelForOllama) {
  const Json tags = get("/api/tags")->json()["models"];
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0]["name"], "minimind-poet");
  EXPECT_GT(tags[0]["size"], 1'000'000);
  const Json details = post_and_wait("/api/show", {{"model", "minimind"}})->json()["details"];
  EXPECT_EQ(details["parent_model"], "");
  EXPECT_NE(details["parameter_size"], "");
  for (const char* const path : {"/api/tags", "/api/ps"}) EXPECT_EQ(get(path)->json()["models"][0]["details"], details);
}

TEST_F(ApiTest, SaysWhichVersionOfOllamasApiItSpeaks) {
  EXPECT_EQ(get("/api/version")->json(), (Json{{"version", "0.12.6"}, {"minimind", MINIMIND_VERSION}}));
}

TEST_F(ApiTest, WorksOutNoSchemasOnceItShutsDown) {
  Json parts = Json::array();
  for (int i = 0; i < 4000; ++i) parts.push_back({{"anyOf", {{{"minimum", i}}, {{"maximum", i}}}}});
  const Json body{{"messages", {{{"role", "user"}, {"content", "a"}}}},
                  {"response_format", format_of({{"allOf", parts}})}};
  std::vector<std::shared_ptr<FakeAnswer>> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(post("/v1/chat/completions", body.dump()));
  api.drain();
  for (const auto& answer : answers) ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answers.back()->status(), 503) << answers.back()->body();
}

TEST_F(ApiTest, EndsTheTextsOfAClientThatIsGone) {
  const auto answer = std::make_shared<FakeAnswer>();
  answer->disconnect_at(20);
  post("/v1/completions", R"({"prompt": "江", "max_tokens": 400, "n": 8, "stream": true, "ignore_eos": true})", answer);
  ASSERT_TRUE(answer->wait_for_pieces(20));
  EXPECT_TRUE(engine.wait_until_idle(std::chrono::seconds(60)));
  EXPECT_EQ(engine.counts().abandoned, 8u);
  EXPECT_LT(engine.counts().generated_tokens, 8u * 50);
}

TEST_F(ApiTest, ATextWaitsForAClientThatIsBehind) {
  const Json chat{{"messages", {from_user}}, {"stream", true}, {"max_tokens", 400}, {"ignore_eos", true}};
  for (const auto& [path, body] :
       {std::pair<std::string, Json>{"/v1/chat/completions", chat},
        {"/v1/completions", {{"prompt", "江"}, {"stream", true}, {"max_tokens", 400}, {"ignore_eos", true}}},
        {"/v1/responses", {{"input", "江"}, {"stream", true}, {"max_output_tokens", 400}, {"ignore_eos", true}}},
        {"/generate_stream", {{"inputs", "江"}, {"parameters", {{"max_new_tokens", 400}, {"ignore_eos_token", true}}}}},
        {"/generate",
         {{"text", "江"}, {"stream", true}, {"sampling_params", {{"max_new_tokens", 400}, {"ignore_eos", true}}}}},
        {"/api/generate", {{"model", "minimind"}, {"prompt", "江"}, {"options", {{"num_predict", 400}}}}}}) {
    const auto answer = std::make_shared<FakeAnswer>();
    answer->fall_behind_at(10);
    post(path, body.dump(), answer);
    ASSERT_TRUE(answer->wait_for_pieces(10)) << path;
    const auto other = post("/v1/completions", R"({"prompt": "山", "max_tokens": 450, "ignore_eos": true})");
    ASSERT_TRUE(other->wait());
    EXPECT_FALSE(answer->has_ended()) << path;
    answer->catch_up();
    EXPECT_TRUE(answer->wait()) << path;
  }
}

TEST_F(ApiTest, NoAnswerEndsForAClientThatIsGone) {
  for (const auto& [path, body] :
       {std::pair<std::string, Json>{
            "/v1/responses", {{"input", "江"}, {"stream", true}, {"max_output_tokens", 400}, {"ignore_eos", true}}},
        {"/generate",
         {{"text", "江"}, {"stream", true}, {"sampling_params", {{"max_new_tokens", 400}, {"ignore_eos", true}}}}},
        {"/api/chat", {{"model", "minimind"}, {"messages", {from_user}}, {"options", {{"num_predict", 400}}}}}}) {
    const auto answer = std::make_shared<FakeAnswer>();
    answer->disconnect_at(3);
    post(path, body.dump(), answer);
    ASSERT_TRUE(answer->wait_for_pieces(3)) << path;
    EXPECT_TRUE(engine.wait_until_idle(std::chrono::seconds(60)));
    EXPECT_FALSE(answer->has_ended()) << path << answer->body();
  }
}

// Texts that start with the first character go on, while those that start with the second take too much work.
TEST_F(ApiTest, TheErrorOfOneTextEndsTheStreamOfAll) {
  std::string set;
  for (unsigned c = 0x20000; c < 0x2F000; c += 2) set += fmt::format("\\u{{{:X}}}", c);
  const Json schema{{"type", "string"}, {"pattern", "^(江{40,60}|山[" + set + "]*)$"}};
  const Json params{{"n", 16}, {"temperature", 3}, {"sampling_seed", 1}, {"json_schema", schema.dump()}};
  const auto rollout = [&](bool stream) {
    return post_and_wait("/generate", {{"text", "a"}, {"sampling_params", params}, {"stream", stream}});
  };
  const auto chats = [&](bool stream) {
    return chat({{"n", 16},
                 {"temperature", 3},
                 {"seed", 1},
                 {"max_tokens", 128},
                 {"stream", stream},
                 {"response_format", format_of(schema)}});
  };
  for (const auto& answer : {rollout(false), chats(false)}) {
    EXPECT_EQ(answer->status(), 400) << answer->body();
    EXPECT_NE(answer->body().find("steps to work out"), std::string::npos) << answer->body();
  }
  for (const auto& answer : {rollout(true), chats(true)}) {
    const std::vector<Json> events = answer->events();
    ASSERT_GT(events.size(), 1u) << answer->body();
    EXPECT_FALSE(answer->has_done());
    for (const Json& event : events) EXPECT_EQ(event.contains("error"), event == events.back()) << event;
  }
}

TEST_F(ApiTest, AResponseThatFailsSaysWhy) {
  std::string set;
  for (unsigned c = 0x20000; c < 0x2F000; c += 2) set += fmt::format("\\u{{{:X}}}", c);
  const Json schema{
      {"type", "array"}, {"items", {{"type", "string"}, {"pattern", "^[" + set + "]*$"}}}, {"minItems", 1}};
  const Json body{{"input", "a"}, {"text", {{"format", {{"type", "json_schema"}, {"name", "n"}, {"schema", schema}}}}}};
  const auto whole = post_and_wait("/v1/responses", body);
  EXPECT_EQ(whole->status(), 400) << whole->body();
  EXPECT_NE(whole->body().find("steps to work out"), std::string::npos) << whole->body();
  const std::vector<Json> events = typed_events(post_and_wait("/v1/responses", body | Json{{"stream", true}})->body());
  ASSERT_GT(events.size(), 2u);
  const Json& error = events[events.size() - 2];
  EXPECT_EQ(error["type"], "error");
  EXPECT_TRUE(error["param"].is_null());
  EXPECT_NE(error["message"].get<std::string>().find("steps to work out"), std::string::npos) << error;
  EXPECT_EQ(events.back()["type"], "response.failed");
  EXPECT_EQ(events.back()["response"]["error"]["message"], error["message"]);
}

TEST_F(ApiTest, RejectsMoreThanTheQueueHolds) {
  ModelShelf small_models(settings(1, 1));
  Api small(small_models, options());
  const auto ask = [&](const std::shared_ptr<FakeAnswer>& answer) {
    return post_to(small, "/v1/completions", R"({"prompt": "江", "max_tokens": 5, "stream": true})", answer);
  };
  const auto running = std::make_shared<FakeAnswer>(), waiting = std::make_shared<FakeAnswer>();
  running->hold();
  ask(running);
  ASSERT_TRUE(running->wait_for_pieces(1));
  ask(waiting);
  std::vector<std::shared_ptr<FakeAnswer>> rejected;
  for (std::size_t i = 0; i < 3; ++i) rejected.push_back(ask(std::make_shared<FakeAnswer>()));
  const bool is_rejected = rejected.back()->wait();  // the engine has no room before release()
  running->release();
  ASSERT_TRUE(is_rejected);
  for (const auto& answer : rejected) {
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 429);
    EXPECT_EQ(answer->json()["error"]["type"], "rate_limit_error");
    EXPECT_EQ(answer->headers(), (HttpHeaders{{"Retry-After", "1"}}));
  }
  for (const auto& answer : {running, waiting}) {
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200);
  }
}

TEST_F(ApiTest, SaysWhyAnAnswerEndsWhenTheTimeForItIsOver) {
  const auto stream = std::make_shared<FakeAnswer>();
  post("/v1/completions", R"({"prompt": "江", "max_tokens": 2000, "stream": true, "ignore_eos": true})", stream);
  const auto whole = post("/v1/completions", R"({"prompt": "江", "max_tokens": 2000, "ignore_eos": true})");
  const auto lines = std::make_shared<FakeAnswer>();
  post("/api/generate", R"({"model": "m", "prompt": "江", "options": {"num_predict": 2000, "temperature": 9}})", lines);
  ASSERT_TRUE(stream->wait_for_pieces(1));
  ASSERT_TRUE(lines->wait_for_pieces(1));
  api.drain();
  api.stop();
  for (const auto& answer : {stream, whole, lines}) ASSERT_TRUE(answer->wait());
  EXPECT_EQ(stream->events().back()["error"]["code"], "unavailable") << stream->events().back();
  EXPECT_FALSE(stream->has_done());
  EXPECT_EQ(whole->status(), 503) << whole->body();
  EXPECT_TRUE(lines->body().ends_with("{\"error\": \"the server is shutting down\"}\n")) << lines->body();
}

TEST_F(ApiTest, IsReadyWhileItHasRoom) {
  ModelShelf small_models(settings(1, 0));
  Api small(small_models, options());
  EXPECT_EQ(get_from(small, "/ready")->status(), 200);
  const auto running = std::make_shared<FakeAnswer>();
  running->hold();
  post_to(small, "/v1/completions", R"({"prompt": "江", "max_tokens": 5, "stream": true})", running);
  ASSERT_TRUE(running->wait_for_pieces(1));
  const auto full = get_from(small, "/ready");
  EXPECT_EQ(full->status(), 503) << full->body();
  EXPECT_EQ(full->json()["status"], "full");
  EXPECT_EQ(get_from(small, "/health")->status(), 200);
  running->release();
  ASSERT_TRUE(running->wait());
  ASSERT_TRUE(small_models.only()->engine.wait_until_idle(std::chrono::seconds(60)));
  EXPECT_EQ(get_from(small, "/ready")->status(), 200);
  small.drain();
  EXPECT_EQ(get_from(small, "/ready")->json()["status"], "shutting down");
}

TEST_F(ApiTest, FinishesAnswersWhileItShutsDown) {
  auto running = post("/v1/completions", R"({"prompt": "江", "max_tokens": 60})");
  while (engine.counts().running + engine.counts().waiting + engine.counts().texts == 0) {
    std::this_thread::yield();
  }
  api.drain();
  EXPECT_EQ(complete({})->status(), 503);
  EXPECT_EQ(get("/health")->status(), 503);
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(running->status(), 200);
}

// Replaces a random value somewhere in the body.
void mutate(Json& value, std::mt19937& random) {
  if (value.is_structured() && !value.empty() && random() % 4 != 0) {
    auto item = value.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random() % value.size()));
    return mutate(*item, random);
  }
  static const Json others = Json::parse(
      R"([null, true, false, 0, -1, 1.5, 1e300, 18446744073709551615, "", "a", "json", [], {}, [[]], [1], ["a"], [{}]])");
  value = others[random() % others.size()];
}

TEST_F(ApiTest, NeverFailsByItselfWhateverTheBody) {
  const std::vector<std::pair<std::string, Json>> bodies{
      {"/api/chat", Json::parse(R"({"model": "minimind", "messages": [{"role": "user", "content": "a", "images": []},
          {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
          {"role": "tool", "tool_name": "f", "content": "1"}], "tools": [{"type": "function", "function": {"name": "f"}}],
          "stream": false, "think": false, "format": "", "options": {"num_predict": 2, "stop": ["a"], "seed": 1, "top_k": 4,
          "num_ctx": 200, "repeat_last_n": -1}})")},
      {"/api/generate", Json::parse(R"({"model": "minimind", "prompt": "a", "system": "s", "raw": false, "stream": true,
          "format": {"type": "object"}, "keep_alive": "5m", "options": {"num_predict": 2, "temperature": 0}})")},
      {"/v1/chat/completions",
       Json::parse(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null,
          "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "1"}],
          "functions": [{"name": "f", "parameters": {"type": "object"}}], "function_call": "auto", "max_tokens": 2})")},
      {"/generate", Json::parse(R"({"input_ids": [[7, 8], [9]], "return_logprob": true, "logprob_start_len": 1,
          "top_logprobs_num": 1, "rid": ["a", "b", "c", "d"], "image_data": [], "stream": false, "sampling_params":
          {"temperature": 0.8, "max_new_tokens": 2, "stop_token_ids": [2], "n": 2, "stop": "x", "no_stop_trim": true,
          "skip_special_tokens": false}})")},
      {"/v1/responses", Json::parse(R"({"model": "minimind", "instructions": "s", "input": [{"role": "user", "content":
          [{"type": "input_text", "text": "a"}]}, {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}],
          "summary": []}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type":
          "function_call_output", "call_id": "c", "output": "1"}], "tools": [{"type": "function", "name": "f", "parameters":
          {"type": "object"}}], "tool_choice": "auto", "text": {"format": {"type": "text"}, "verbosity": "low"},
          "reasoning": {"effort": "none", "summary": "auto"}, "include": ["message.output_text.logprobs"], "store": true,
          "max_output_tokens": 2, "stream": false, "temperature": 1, "metadata": {"a": "b"}, "truncation": "auto"})")},
      {"/tokenize", Json::parse(R"({"content": "a", "add_special": true, "with_pieces": true})")},
      {"/detokenize", Json::parse(R"({"tokens": [1, 2]})")},
      {"/v1/inside", Json::parse(R"({"prompt": "月", "positions": [0], "neurons": 1, "candidates": 2, "top_k": 3,
          "without": [{"layer": 0, "head": 1}, {"layer": 1, "neuron": 2}]})")},
      {"/apply-template", Json::parse(R"({"messages": [{"role": "user", "content": "a"}]})")}};
  std::mt19937 random(1);
  for (const auto& [path, whole] : bodies) {
    ASSERT_EQ(post_and_wait(path, whole)->status(), 200) << path << post_and_wait(path, whole)->body();
    for (unsigned i = 0; i < cases(60); ++i) {
      Json body = whole;
      mutate(body, random);
      const auto answer = post_and_wait(path, body);
      EXPECT_TRUE(answer->status() < 500) << path << body << answer->body();
    }
  }
}

struct Wrong {
  std::string path, body, param;
  int status = 400;
};

TEST_F(ApiTest, NamesTheFieldThatIsWrong) {
  const std::string chat_path = "/v1/chat/completions", path = "/v1/completions";
  const std::string messages = R"("messages": [{"role": "user", "content": "a"}])";
  const std::string tool = R"("tools": [{"type": "function", "function": {"name": "f"}}])";
  const auto with = [&](const std::string& fields) { return "{" + messages + ", " + fields + "}"; };
  const auto text = [&](const std::string& fields) { return R"({"prompt": "a", )" + fields + "}"; };
  const std::vector<Wrong> cases{
      {chat_path, "{}", "messages"},
      {chat_path, R"({"messages": "a"})", "messages"},
      {chat_path, R"({"messages": []})", "messages"},
      {chat_path, R"({"messages": [{"role": "user"}]})", "messages"},
      {chat_path, R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages"},
      {chat_path, with(R"("model": 4)"), "model"},
      {chat_path, R"({"messages": [{"role": "assistant", "tool_calls": [{"name": "f"}]}]})", "messages"},
      {chat_path, with(R"("temperature": "1")"), "temperature"},
      {chat_path, with(R"("temperature": -0.1)"), "temperature"},
      {chat_path, with(R"("top_p": 1.5)"), "top_p"},
      {chat_path, with(R"("repeat_penalty": 0)"), "repeat_penalty"},
      {chat_path, with(R"("n": 0)"), "n"},
      {chat_path, with(R"("n": 1.5)"), "n"},
      {chat_path, with(R"("seed": "a")"), "seed"},
      {chat_path, with(R"("stop": 3)"), "stop"},
      {chat_path, with(R"("max_tokens": 0)"), "max_tokens"},
      {chat_path, with(R"("max_completion_tokens": -2)"), "max_completion_tokens"},
      {chat_path, with(R"("min_tokens": 17)"), "min_tokens"},
      {chat_path, with(R"("stop_token_ids": 1)"), "stop_token_ids"},
      {chat_path, with(R"("repeat_last_n": -2)"), "repeat_last_n"},
      {chat_path, with(R"("use_beam_search": true)"), "use_beam_search"},
      {chat_path, with(R"("verbosity": "much")"), "verbosity"},
      {chat_path, with(R"("stream": true, "return_tokens_as_token_ids": true)"), "return_tokens_as_token_ids"},
      {chat_path, with(R"("stream": true, "prompt_logprobs": 0)"), "prompt_logprobs"},
      {chat_path, with(R"("max_tokens": 1, "max_completion_tokens": 2)"), "max_tokens"},
      {chat_path, with(R"("logit_bias": {"a": 1})"), "logit_bias"},
      {chat_path, with(R"("logit_bias": {"999999": 1})"), "logit_bias"},
      {chat_path, with(R"("logprobs": 1)"), "logprobs"},
      {chat_path, with(R"("top_logprobs": 1)"), "top_logprobs"},
      {chat_path, with(R"("logprobs": true, "top_logprobs": 21)"), "top_logprobs"},
      {chat_path, with(R"("stream": "yes")"), "stream"},
      {chat_path, with(R"("stream_options": {"include_usage": true})"), "stream_options"},
      {chat_path, with(R"("stream": true, "stream_options": {"include_usage": 1})"), "stream_options.include_usage"},
      {chat_path, with(R"("response_format": {"type": "xml"})"), "response_format"},
      {chat_path, with(R"("response_format": {"type": "json_object", "schemas": {}})"), "response_format.schemas"},
      {chat_path, with(R"("response_format": {"type": "text", "schema": {}})"), "response_format.schema"},
      {chat_path, with(R"("tools": {})"), "tools"},
      {chat_path, with(R"("tools": [{"type": "custom", "custom": {"name": "c"}}])"), "tools"},
      {chat_path, with(R"("tool_choice": "required")"), "tool_choice"},
      {chat_path, with(tool + R"(, "tool_choice": "always")"), "tool_choice"},
      {chat_path, with(tool + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})"), "tool_choice"},
      {chat_path, with(tool + R"(, "parallel_tool_calls": 1)"), "parallel_tool_calls"},
      {chat_path, with(tool + R"(, "tool_choice": "required", "grammar": "root ::= [a]")"), "grammar"},
      {chat_path, with(R"("structured_outputs": {"regex": "(a"})"), "structured_outputs.regex"},
      {chat_path, with(R"("functions": {"name": "f"})"), "functions"},
      {chat_path, with(R"("functions": [{"name": "f"}], "function_call": {"name": "g"})"), "function_call"},
      {chat_path, with(R"("modalities": ["audio"])"), "modalities"},
      {chat_path, with(R"("reasoning_effort": "much")"), "reasoning_effort"},
      {chat_path, with(R"("chat_template_kwargs": {"other": 1})"), "chat_template_kwargs.other"},
      {chat_path, with(R"("chat_template_kwargs": {"thinking": "no"})"), "chat_template_kwargs.thinking"},
      {chat_path, with(R"("chat_template_kwargs": {"reasoning_effort": "a"})"),
       "chat_template_kwargs.reasoning_effort"},
      {chat_path, with(R"("reasoning": {"effort": "much"})"), "reasoning.effort"},
      {chat_path, with(R"("reasoning": {"exclude": true})"), "reasoning.exclude"},
      {chat_path, with(R"("thinking": true)"), "thinking"},
      {chat_path, with(R"("thinking": {"type": "much"})"), "thinking.type"},
      {chat_path, with(R"("response_format": {"type": "json"})"), "response_format"},
      {chat_path, with(R"("response_format": {"type": "json_object", "schema": {}, "value": {}})"),
       "response_format.value"},
      {chat_path, with(R"("response_format": {"type": "regex", "value": {}})"), "response_format.value"},
      {chat_path, with(R"("reasoning_format": "none")"), "reasoning_format"},
      {chat_path, with(R"("grammar": "root ::= (")"), "grammar"},
      {chat_path, with(R"("user": 1)"), "user"},
      {chat_path, with(R"("metadata": {"a": 1})"), "metadata"},
      {chat_path, with(R"("best_of": 2)"), "best_of"},
      {chat_path, with(R"("custom_id": "a")"), "custom_id"},
      {chat_path, with(R"("n": 1180591620717411303424)"), "n"},
      {chat_path, with(R"("metadata": {"a": 1180591620717411303424}, "n": 1)"), "metadata"},
      {chat_path, "[]", ""},
      {chat_path, "{", ""},
      {path, "{}", "prompt"},
      {path, R"({"prompt": [[]]})", "prompt"},
      {path, R"({"prompt": []})", "prompt"},
      {path, R"({"prompt": ["a", 1]})", "prompt"},
      {path, R"({"prompt": [1, "a"]})", "prompt"},
      {path, R"({"prompt": [99999999]})", "prompt"},
      {path, text(R"("logprobs": true)"), "logprobs"},
      {path, text(R"("echo": "yes")"), "echo"},
      {path, text(R"("suffix": "b")"), "suffix"},
      {path, text(R"("n": 3, "best_of": 2)"), "best_of"},
      {path, text(R"("best_of": 2, "stream": true)"), "best_of"},
      {path, text(R"("dry_sequence_breakers": "a")"), "dry_sequence_breakers"},
      {path, text(R"("max_tokens": 1000000000)"), "max_tokens"},
      {chat_path, with(R"("tools": [{"type": "function", "function": {}}])"), "tools"},
      {"/tokenize", R"({"content": 1})", "content"},
      {"/v1/responses", "{}", "input"},
      {"/v1/responses", R"({"input": 1})", "input"},
      {"/v1/responses", R"({"input": []})", "input"},
      {"/v1/responses", R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input"},
      {"/v1/responses", R"({"input": [{"type": "web_search_call"}]})", "input[0].type"},
      {"/v1/responses", R"({"input": [{"role": "user", "content": "a", "id": 1}]})", "input[0].id"},
      {"/v1/responses", R"({"input": [{"role": "user", "content": "a", "status": [1e9]}]})", "input[0].status"},
      {"/v1/responses", R"({"input": [{"role": "user", "content": "a", "phase": {}}]})", "input[0].phase"},
      {"/v1/responses", R"({"input": [{"role": "user", "content": "a", "images": 1}]})", "input[0].images"},
      {"/v1/responses", R"({"input": "a", "previous_response_id": "resp_1"})", "previous_response_id"},
      {"/v1/responses", R"({"input": "a", "max_output_tokens": 0})", "max_output_tokens"},
      {"/v1/responses", R"({"input": "a", "max_tokens": 1})", "max_tokens"},
      {"/v1/responses", R"({"input": "a", "background": true})", "background"},
      {"/v1/responses", R"({"input": "a", "truncation": "middle"})", "truncation"},
      {"/v1/responses", R"({"input": "a", "tools": [{"type": "web_search"}]})", "tools"},
      {"/v1/responses", R"({"input": "a", "tool_choice": "required"})", "tool_choice"},
      {"/v1/responses", R"({"input": "a", "text": {"format": {"type": "xml"}}})", "text.format"},
      {"/v1/responses", R"({"input": "a", "text": {"verbosity": "much"}})", "text.verbosity"},
      {"/v1/responses", R"({"input": "a", "reasoning": {"effort": "much"}})", "reasoning.effort"},
      {"/v1/responses", R"({"input": "a", "include": ["output_audio"]})", "include"},
      {"/v1/responses", R"({"input": "a", "reasoning": {"summary": [0]}})", "reasoning.summary"},
      {"/v1/responses", R"({"input": "a", "reasoning": {"generate_summary": 1}})", "reasoning.generate_summary"},
      {"/generate", R"({"input_ids": [[7], [99999999]]})", "input_ids"},
      {"/generate", R"({"input_ids": [7], "stream": true, "return_logprob": true})", "return_logprob"},
      {"/generate", R"({"input_ids": [7], "return_logprob": true, "logprob_start_len": 2})", "logprob_start_len"},
      {"/generate", R"({"input_ids": [7], "return_logprob": true, "logprob_start_len": -2})", "logprob_start_len"},
      {"/generate", R"({"input_ids": [7], "return_logprob": true, "top_logprobs_num": 100, "logprob_start_len": 0,
                        "sampling_params": {"n": 1024, "max_new_tokens": 40}})",
       "return_logprob"},
      {"/generate", R"({"input_ids": [7], "rid": ["a", "b"]})", "rid"},
      {"/generate", R"({"input_ids": [7], "image_data": ["a.png"]})", "image_data"},
      {"/generate", R"({"input_ids": [7], "token_ids_logprob": [1]})", "token_ids_logprob"},
      {"/generate", R"({"input_ids": [7], "lora_path": "a"})", "lora_path"},
      {"/generate", R"({"input_ids": [7], "return_hidden_states": true})", "return_hidden_states"},
      {"/generate", R"({"input_ids": [7], "sampling_params": {"skip_special_tokens": 0}})",
       "sampling_params.skip_special_tokens"},
      {"/generate", R"({"input_ids": [7], "sampling_params": {"custom_params": {"a": 1}}})",
       "sampling_params.custom_params"},
      {"/update_weights_from_disk", R"({"model_path": ""})", "model_path"},
      {"/flush_cache", R"({"all": true})", "all"},
      {"/detokenize", R"({"tokens": [-1]})", "tokens"},
      {"/detokenize", R"({"tokens": [1.5]})", "tokens"},
      {"/detokenize", R"({"tokens": [99999999]})", "tokens"},
      {"/detokenize", R"({"tokens": "a"})", "tokens"},
      {"/detokenize", R"({"tokens": {"0": 1}})", "tokens"},
      {"/detokenize", R"({"tokens": [1], "pieces": true})", "pieces"},
      {"/detokenize", "{}", "tokens"},
      {"/tokenize", "{}", "content"},
      {"/tokenize", R"({"content": "a", "with_pieces": 1})", "with_pieces"},
      {"/tokenize", "", ""},
      {"/v1/inside", "{}", "prompt"},
      {"/v1/inside", with(R"("prompt": "a")"), "messages"},
      {"/v1/inside", R"({"prompt": ["a", "b"]})", "prompt"},
      {"/v1/inside", text(R"("stream": true)"), "stream"},
      {"/v1/inside", text(R"("max_tokens": 3)"), "max_tokens"},
      {"/v1/inside", text(R"("positions": [1000])"), "positions"},
      {"/v1/inside", text(R"("positions": [])"), "positions"},
      {"/v1/inside", text(R"("positions": [-1])"), "positions"},
      {"/v1/inside", text(R"("positions": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])"), "positions"},
      {"/v1/inside", text(R"("candidates": 0)"), "candidates"},
      {"/v1/inside", text(R"("neurons": 17)"), "neurons"},
      {"/v1/inside", text(R"("top_p": 2)"), "top_p"},
      {"/v1/inside", text(R"("without": {"layer": 0})"), "without"},
      {"/v1/inside", text(R"("without": [{"head": 0}])"), "without.layer"},
      {"/v1/inside", text(R"("without": [{"layer": 0}])"), "without"},
      {"/v1/inside", text(R"("without": [{"layer": 0, "head": 1000}])"), "without"},
      {"/v1/inside", text(R"("without": [{"layer": 0, "row": 0}])"), "without.row"},
      {"/apply-template", "{}", "messages"},
      {"/update_weights_from_disk", "{}", "model_path"},
      {"/update_weights_from_disk", R"({"model_path": "a", "is_async": true})", "is_async"},
      {"/update_weights_from_disk", R"({"model_path": "a", "flush_cache": 1})", "flush_cache"},
      {"/update_weights_from_disk", R"({"model_path": "a", "load_format": 1})", "load_format"},
  };
  for (const Wrong& wrong : cases) {
    const auto answer = post(wrong.path, wrong.body);
    ASSERT_TRUE(answer->wait()) << wrong.body;
    EXPECT_EQ(answer->status(), wrong.status) << wrong.body << "\n" << answer->body();
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"].is_null() ? "" : error["param"].get<std::string>(), wrong.param) << wrong.body << error;
    EXPECT_TRUE(error.contains("message") && error.contains("code"));
  }
}

TEST_F(ApiTest, NamesTheFieldOfARolloutThatIsWrong) {
  std::string longer;
  for (int i = 0; i < 40'000; ++i) longer += "a b ";
  for (const auto& [body, field] : {std::pair<std::string, std::string>{"{}", "input_ids"},
                                    {R"({"input_ids": [7], "text": "a"})", "text"},
                                    {R"({"input_ids": []})", "input_ids"},
                                    {R"({"input_ids": [[]]})", "input_ids"},
                                    {R"({"text": 1})", "text"},
                                    {R"({"text": []})", "text"},
                                    {R"({"text": ")" + longer + "\"}", "text"}}) {
    const auto answer = post("/generate", body);
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 400) << answer->body();
    EXPECT_EQ(answer->json()["error"]["param"], field) << answer->body();
  }
}

TEST_F(ApiTest, SwitchesOffAFewPartsAtOnce) {
  const Json body{{"prompt", "a"}, {"without", std::vector<Json>(65, {{"layer", 0}, {"head", 0}})}};
  EXPECT_EQ(post_and_wait("/v1/inside", body)->json()["error"]["message"],
            "without is a list, expected a list of at most 64 objects with layer and head, neuron or expert");
}

TEST_F(ApiTest, RequiresJsonByItsContentType) {
  for (const char* const path : {"/flush_cache", "/reset_prefix_cache"}) EXPECT_EQ(post(path, "")->wait(), true);
  for (const char* const type : {"", "text/plain", "application/x-www-form-urlencoded"}) {
    const auto answer = std::make_shared<FakeAnswer>();
    api.handle(
        {.method = "POST", .path = "/v1/completions", .query = "", .headers = {{"content-type", type}}, .body = "{}"},
        answer);
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 415) << type;
  }
  const auto answer = std::make_shared<FakeAnswer>();
  api.handle({.method = "POST",
              .path = "/v1/completions",
              .query = "",
              .headers = {{"content-type", "application/json"}, {"content-encoding", "gzip"}},
              .body = "\x1f\x8b"},
             answer);
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 415) << answer->body();
}

TEST_F(ApiTest, ContinuesAnAnswer) {
  const Json question{{"role", "user"}, {"content", "写一首五言绝句，题目：江上"}};
  const Json whole = chat({{"temperature", 0}, {"max_tokens", 24}})->json()["choices"][0]["message"];
  const Json part = chat({{"temperature", 0}, {"max_tokens", 8}})->json()["choices"][0]["message"];
  Json body{{"messages", {question, {{"role", "assistant"}, {"content", part["content"]}}}},
            {"temperature", 0},
            {"max_tokens", 16},
            {"add_generation_prompt", false},
            {"continue_final_message", true}};
  const Json rest = chat(body)->json()["choices"][0]["message"];
  EXPECT_EQ(whole["content"], part["content"].get<std::string>() + rest["content"].get<std::string>());
  body["add_generation_prompt"] = true;
  EXPECT_EQ(chat(body)->json()["error"]["param"], "continue_final_message");
  body.erase("continue_final_message");
  const Json first = chat({{"temperature", 0}, {"max_tokens", 16}})->json()["choices"];
  EXPECT_EQ(chat(body)->json()["choices"], first) << "another answer, by a template without memory";
  body.erase("add_generation_prompt");
  EXPECT_EQ(chat(body)->json()["choices"], first);
}

TEST_F(ApiTest, AcceptsFieldsThatChangeNothing) {
  const Json plain = chat({{"seed", 3}})->json()["choices"];
  const Json harmless{{"seed", 3},
                      {"user", "u"},
                      {"store", false},
                      {"metadata", {{"a", "b"}}},
                      {"service_tier", "auto"},
                      {"parallel_tool_calls", true},
                      {"n", nullptr},
                      {"tools", nullptr},
                      {"modalities", {"text"}},
                      {"reasoning_effort", "none"},
                      {"response_format", {{"type", "text"}}}};
  EXPECT_EQ(chat(harmless)->json()["choices"], plain);
}

TEST_F(ApiTest, NamesFieldsThatChangeNothingOnce) {
  ApiOptions own = options();
  std::vector<std::string> notices;
  own.notice = [&](const std::string& field) { notices.push_back(field); };
  Api api_with_notices(models, std::move(own));
  const Json hints{{"cache_prompt", true},
                   {"priority", 3},
                   {"verbosity", "high"},
                   {"user", "u"},
                   {"guided_decoding_backend", "xgrammar"}};
  const Json body = Json{{"prompt", "a"}, {"max_tokens", 1}} | hints;
  for (int i = 0; i < 2; ++i) {
    const auto answer = post_to(api_with_notices, "/v1/completions", body.dump());
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200) << answer->body();
  }
  EXPECT_EQ(notices, (std::vector<std::string>{"verbosity", "cache_prompt", "priority", "guided_decoding_backend"}));
  EXPECT_TRUE(
      post_to(api_with_notices, "/api/generate",
              R"({"model": "m", "prompt": "", "keep_alive": "5m", "options": {"num_gpu": 1, "draft_num_predict": 4}})")
          ->wait());
  EXPECT_EQ(notices.size(), 7u);
  EXPECT_EQ(notices[4], "options.num_gpu");
  EXPECT_EQ(notices[5], "options.draft_num_predict");

  const auto longer =
      post_to(api_with_notices, "/api/generate",
              R"({"model": "m", "prompt": "a", "stream": false, "options": {"num_ctx": 1000000, "num_predict": 1}})");
  ASSERT_TRUE(longer->wait());
  EXPECT_EQ(longer->status(), 200) << longer->body();
  EXPECT_TRUE(notices.back().starts_with("options.num_ctx over the ")) << notices.back();
}

TEST_F(ApiTest, NamesWhatAResponseCannotIncludeOnce) {
  ApiOptions own = options();
  std::vector<std::string> notices;
  own.notice = [&](const std::string& field) { notices.push_back(field); };
  Api api_with_notices(models, std::move(own));
  for (int i = 0; i < 2; ++i) {
    const auto answer =
        post_to(api_with_notices, "/v1/responses",
                R"({"input": "a", "max_output_tokens": 1, "client_metadata": {"x-codex-installation-id": "b"},
            "truncation": "auto", "include": ["web_search_call.action.sources", "file_search_call.results"]})");
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200) << answer->body();
    EXPECT_EQ(answer->json()["truncation"], "auto");
  }
  EXPECT_EQ(notices,
            (std::vector<std::string>{"include: web_search_call.action.sources", "include: file_search_call.results",
                                      "truncation: auto", "client_metadata"}));
}

TEST_F(ApiTest, NamesMarksForACacheOnce) {
  ApiOptions own = options();
  std::vector<std::string> notices;
  own.notice = [&](const std::string& field) { notices.push_back(field); };
  Api api_with_notices(models, std::move(own));
  const Json mark{{"type", "ephemeral"}};
  std::vector<std::string> expected;
  for (const std::string name : {"cache_control", "prompt_cache_breakpoint"}) {
    expected.push_back("messages.content." + name);
    const auto user = [&](const char* type) {
      return Json{{"role", "user"}, {"content", {{{"type", type}, {"text", "a"}, {name, mark}}}}};
    };
    for (const auto& [path, body] :
         {std::pair<const char*, Json>{"/v1/chat/completions", {{"messages", {user("text")}}, {"max_tokens", 1}}},
          {"/v1/responses", {{"input", {user("input_text")}}, {"max_output_tokens", 1}}},
          {"/api/chat", {{"model", "m"}, {"messages", {user("text")}}, {"options", {{"num_predict", 1}}}}}}) {
      const auto answer = post_to(api_with_notices, path, body.dump());
      ASSERT_TRUE(answer->wait());
      EXPECT_EQ(answer->status(), 200) << answer->body();
      EXPECT_EQ(notices, expected) << path;
    }
  }
  const Json marked = from_user | Json{{"cache_control", mark}};
  const Json body{{"messages", {marked}}, {"max_tokens", 1}};
  const auto answer = post_to(api_with_notices, "/v1/chat/completions", body.dump());
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 200) << answer->body();
  EXPECT_EQ(notices.back(), "messages.cache_control");
}

TEST_F(ApiTest, AResponseGoesOnAfterARefusal) {
  const auto tokens = [&](const Json& part) {
    const Json answer{{"role", "assistant"}, {"content", {part}}};
    const auto counted = post_and_wait("/v1/responses/input_tokens", {{"input", {from_user, answer, from_user}}});
    EXPECT_EQ(counted->status(), 200) << counted->body();
    return counted->json()["input_tokens"];
  };
  EXPECT_EQ(tokens({{"type", "refusal"}, {"refusal", "no"}}), tokens({{"type", "output_text"}, {"text", "no"}}));
  const Json refused{{"role", "user"}, {"content", {{{"type", "refusal"}, {"refusal", "no"}}}}};
  EXPECT_EQ(post_and_wait("/v1/responses", {{"input", {refused}}})->json()["error"]["param"], "input");
}

TEST_F(ApiTest, NoEndTokenComesBeforeTheLeastTokens) {
  const std::string end = std::to_string(demo_model().llm().end_tokens().front());
  const Json ending{{"logit_bias", {{end, 1000}}}, {"return_token_ids", true}};
  EXPECT_EQ(chat(ending)->json()["choices"][0]["token_ids"].size(), 1u);
  for (const Json& grammar : {Json(nullptr), Json("root ::= .*")}) {
    const Json choice = chat(ending | Json{{"min_tokens", 5}, {"grammar", grammar}})->json()["choices"][0];
    EXPECT_EQ(choice["token_ids"].size(), 6u) << choice;
    EXPECT_EQ(choice["finish_reason"], "stop");
  }
  const Json short_choice =
      chat(ending | Json{{"min_tokens", 5}, {"grammar", R"(root ::= "a")"}})->json()["choices"][0];
  EXPECT_EQ(short_choice["message"]["content"], "a") << "nothing else may follow";
  const Json rollout{
      {"input_ids", {7}},
      {"sampling_params", {{"min_new_tokens", 5}, {"max_new_tokens", 20}, {"stop_token_ids", Json::array()}}}};
  EXPECT_GE(post_and_wait("/generate", rollout)->json()["output_ids"].size(), 5u);
}

TEST_F(ApiTest, StopTokensEndATextOfAnyApi) {
  const Json whole = complete({{"temperature", 0}, {"return_token_ids", true}})->json()["choices"][0];
  const Json stop = whole["token_ids"][4];
  const std::size_t length = std::ranges::find(whole["token_ids"], stop) - whole["token_ids"].begin() + 1;
  for (const bool ignore : {false, true}) {
    const Json cut =
        complete({{"temperature", 0}, {"return_token_ids", true}, {"stop_token_ids", {stop}}, {"ignore_eos", ignore}})
            ->json()["choices"][0];
    EXPECT_EQ(cut["token_ids"].size(), length) << cut;
    EXPECT_EQ(cut["finish_reason"], "stop");
    EXPECT_TRUE(whole["text"].get<std::string>().starts_with(cut["text"].get<std::string>()));
  }
}

TEST_F(ApiTest, GivesTheTokensAndScoresOfThePrompt) {
  const Json prompt = post_and_wait("/tokenize", {{"content", "床前明月光，"}})->json()["tokens"];
  const Json fields{
      {"return_token_ids", true}, {"prompt_logprobs", 2}, {"logprobs", 1}, {"max_tokens", 3}, {"temperature", 0}};
  const Json choice = complete(fields)->json()["choices"][0];
  const Json all = complete(fields | Json{{"prompt_logprobs", 20}})->json()["choices"][0];
  const Json echoed = complete({{"echo", true}, {"logprobs", 1}, {"max_tokens", 3}, {"temperature", 0}})
                          ->json()["choices"][0]["logprobs"];
  EXPECT_EQ(choice["prompt_token_ids"], prompt);
  EXPECT_EQ(choice["token_ids"].size(), 3u);
  ASSERT_EQ(choice["prompt_logprobs"].size(), prompt.size());
  EXPECT_TRUE(choice["prompt_logprobs"][0].is_null());
  for (std::size_t i = 1; i < prompt.size(); ++i) {
    const Json& tokens = choice["prompt_logprobs"][i];
    EXPECT_GE(tokens.size(), 2u);
    for (const auto& [id, token] : tokens.items()) {
      const double own = token["logprob"];
      const auto is_likelier = [&](const Json& other) { return other["logprob"] > own; };
      const auto before = static_cast<std::size_t>(std::ranges::count_if(all["prompt_logprobs"][i], is_likelier));
      if (before == 20) {
        EXPECT_GT(token["rank"], 20) << id << " is less likely than all alternatives";
      } else {
        EXPECT_EQ(token["rank"], before + 1) << id;
      }
    }
    EXPECT_EQ(tokens[prompt[i].dump()]["logprob"], echoed["token_logprobs"][i]);
    EXPECT_EQ(tokens[prompt[i].dump()]["decoded_token"], echoed["tokens"][i]);
  }
  EXPECT_LE(choice["logprobs"]["top_logprobs"][0].size(), 1u) << "one alternative, which is the token";
  const Json whole_chat = chat({{"return_token_ids", true}, {"prompt_logprobs", 0}, {"max_tokens", 2}})->json();
  EXPECT_EQ(whole_chat["prompt_token_ids"].size(), whole_chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(whole_chat["prompt_logprobs"].size(), whole_chat["usage"]["prompt_tokens"]);
  EXPECT_TRUE(whole_chat["choices"][0]["logprobs"].is_null());
}

TEST_F(ApiTest, TheOperatorAllowsMoreLogprobsAndTemplatesOfRequests) {
  ApiOptions trusting = options();
  trusting.defaults.most_logprobs = 100;
  trusting.defaults.trusts_templates = true;
  Api own(models, std::move(trusting));
  const auto ask = [&](Api& to, const std::string& path, const Json& body) {
    const auto answer = post_to(to, path, body.dump(), std::make_shared<FakeAnswer>());
    EXPECT_TRUE(answer->wait()) << body;
    return answer->json();
  };
  const std::string completions = "/v1/completions", chats = "/v1/chat/completions";
  const Json scored{{"prompt", {300, 301, 302}}, {"prompt_logprobs", 100}, {"max_tokens", 1}};
  EXPECT_GE(ask(own, completions, scored)["choices"][0]["prompt_logprobs"][2].size(), 100u);
  EXPECT_EQ(ask(api, completions, scored)["error"]["param"], "prompt_logprobs");
  Json templated{{"messages", {{{"role", "user"}, {"content", "江上"}}}},
                 {"chat_template", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}?"},
                 {"return_token_ids", true},
                 {"max_tokens", 1}};
  EXPECT_EQ(ask(own, chats, templated)["prompt_token_ids"],
            ask(own, "/tokenize", {{"content", "<|im_start|>江上?"}})["tokens"]);
  EXPECT_EQ(ask(api, chats, templated)["error"]["param"], "chat_template");
  templated["chat_template"] = "{% for %}";
  EXPECT_EQ(ask(own, chats, templated)["error"]["param"], "chat_template");
  templated["chat_template"] = nullptr;
  EXPECT_TRUE(ask(api, chats, templated).contains("choices"));
}

TEST(CompletionTest, TheEngineKnowsHowMuchOfThePromptAnAnswerHas) {
  const auto values = [](const std::string& fields) {
    const Json body = Json::parse(R"({"prompt": [7, 10, 11])" + fields + "}");
    std::size_t count = 0;
    const auto submit = [&](const std::vector<TextJob>& jobs) { count = jobs.back().prompt_values; };
    const auto seed = [](std::size_t) { return std::uint64_t{0}; };
    Completion::start(demo_model(), submit, read_request(body, false, {}), seed, std::make_shared<FakeAnswer>());
    return count;
  };
  EXPECT_EQ(values(""), 0u);
  EXPECT_EQ(values(R"(, "echo": true)"), 3u);
  EXPECT_EQ(values(R"(, "return_token_ids": true)"), 3u);
  EXPECT_EQ(values(R"(, "return_token_ids": true, "echo": true, "n": 2)"), 6u);
}

TEST_F(ApiTest, AStreamHasTheIdsOfItsTokens) {
  const Json fields{{"return_token_ids", true}, {"temperature", 0}, {"max_tokens", 20}, {"n", 2}};
  for (const bool is_chat : {true, false}) {
    const auto ask = [&](const Json& more) { return is_chat ? chat(fields | more) : complete(fields | more); };
    const Json whole = ask({{"stream", false}})->json();
    std::array<Json, 2> ids{Json::array(), Json::array()};
    std::array<int, 2> prompts{};
    for (const Json& event : ask({{"stream", true}})->events()) {
      for (const Json& choice : event["choices"]) {
        const std::size_t index = choice["index"];
        for (const Json& id : choice.value("token_ids", Json::array())) ids[index].push_back(id);
        const Json& has_prompt = is_chat ? event : choice;
        if (!has_prompt.contains("prompt_token_ids")) continue;
        ++prompts[index];
        EXPECT_EQ(has_prompt["prompt_token_ids"], (is_chat ? whole : whole["choices"][index])["prompt_token_ids"]);
      }
    }
    for (const std::size_t index : {0, 1}) {
      EXPECT_EQ(ids[index], whole["choices"][index]["token_ids"]);
      EXPECT_EQ(prompts[index], 1);
    }
  }
}

// The end token and those of a stop string have their scores, too.
TEST_F(ApiTest, LogprobsByIdsHaveEachToken) {
  const Json fields{{"temperature", 0},
                    {"stop", Json::array({"。"})},
                    {"return_token_ids", true},
                    {"return_tokens_as_token_ids", true},
                    {"logprobs", 0}};
  const auto names_of_ids = [](const Json& ids) {
    Json names = Json::array();
    for (const Json& id : ids) names.push_back("token_id:" + id.dump());
    return names;
  };
  const Json choice = complete(fields)->json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["logprobs"]["tokens"], names_of_ids(choice["token_ids"]));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0].begin().key(), choice["logprobs"]["tokens"][0]);
  const std::string end = std::to_string(demo_model().llm().end_tokens().front());
  const Json answer =
      chat(fields | Json{{"logprobs", true}, {"top_logprobs", 1}, {"logit_bias", {{end, 1000}}}})->json()["choices"][0];
  ASSERT_EQ(answer["logprobs"]["content"].size(), 1u);
  EXPECT_EQ(answer["logprobs"]["content"][0]["token"], "token_id:" + end);
  EXPECT_TRUE(answer["logprobs"]["content"][0]["top_logprobs"][0]["token"].get<std::string>().starts_with("token_id:"));
}

TEST_F(ApiTest, AnEmptyPromptIsTheStartOfAText) {
  const Json bos = Json::array({*demo_model().tokenizer().bos_id()});
  for (const Json& prompt : {Json(""), Json::array({""})}) {
    EXPECT_EQ(complete({{"prompt", prompt}, {"return_token_ids", true}})->json()["choices"][0]["prompt_token_ids"],
              bos);
  }
  EXPECT_EQ(post_and_wait("/generate", {{"text", ""}})->status(), 200);
}

TEST_F(ApiTest, RollsOutAsSglangDoes) {
  const Json prompts{{7, 8, 9}, {10, 11}};
  const Json params{{"temperature", 0.8}, {"max_new_tokens", 12}, {"stop_token_ids", {2}}, {"sampling_seed", 5}};
  const Json body{{"input_ids", prompts}, {"sampling_params", params}, {"return_logprob", true}};
  const Json results = post_and_wait("/generate", body)->json();
  ASSERT_EQ(results.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& meta = results[i]["meta_info"];
    const auto ids = results[i]["output_ids"].get<std::vector<std::int32_t>>();
    EXPECT_EQ(meta["completion_tokens"], ids.size());
    EXPECT_EQ(meta["prompt_tokens"], prompts[i].size());
    ASSERT_EQ(meta["output_token_logprobs"].size(), ids.size());
    // The log-probabilities are those of the untouched logits: as a completion with the same tokens echoes them.
    Json whole = prompts[i];
    for (std::size_t k = 0; k < ids.size(); ++k) {
      EXPECT_EQ(meta["output_token_logprobs"][k][1], ids[k]);
      whole.push_back(ids[k]);
    }
    const Json scored = complete({{"prompt", whole}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}})->json();
    const Json& logprobs = scored["choices"][0]["logprobs"]["token_logprobs"];
    for (std::size_t k = 0; k < ids.size(); ++k) {
      EXPECT_EQ(logprobs[prompts[i].size() + k], meta["output_token_logprobs"][k][0]);
    }
  }
  EXPECT_EQ(post_and_wait("/generate", {{"input_ids", {7, 8}}, {"sampling_params", params}})
                ->json()["meta_info"]["prompt_tokens"],
            2);
  EXPECT_EQ(post_and_wait("/generate", {{"input_ids", {7, 8}}, {"sampling_params", {{"tempreature", 1}}}})
                ->json()["error"]["param"],
            "sampling_params.tempreature");
}

Json rollout_of(Json params, Json more = Json::object()) {
  params["temperature"] = 0;
  return Json{{"text", "<|im_start|>user\n江上<|im_end|>\n<|im_start|>assistant\n"}, {"sampling_params", params}} |
         more;
}

TEST_F(ApiTest, RolloutsHaveSpecialTokensAndStopStringsIfThatIsAskedFor) {
  const auto text_of = [&](Json params) {
    return post_and_wait("/generate", rollout_of(std::move(params)))->json()["text"].get<std::string>();
  };
  const Json more{{"max_new_tokens", 200}};
  const std::string text = text_of(more), end = "<|im_end|>";
  EXPECT_EQ(text_of(more | Json{{"no_stop_trim", true}}), text);
  EXPECT_EQ(text_of(more | Json{{"skip_special_tokens", false}}), text);
  EXPECT_EQ(text_of(more | Json{{"skip_special_tokens", false}, {"no_stop_trim", true}}), text + end);
  const Json longer{{"max_new_tokens", 200}, {"ignore_eos", true}, {"skip_special_tokens", false}};
  EXPECT_TRUE(text_of(longer).starts_with(text + end)) << text_of(longer);
  const std::string stop = text.substr(6, 3), before = text.substr(0, text.find(stop));
  const Json stopped = post_and_wait("/generate", rollout_of(more | Json{{"stop", {"x", stop}}}))->json();
  EXPECT_EQ(stopped["text"], before);
  EXPECT_EQ(stopped["meta_info"]["finish_reason"], (Json{{"type", "stop"}, {"matched", stop}}));
  EXPECT_TRUE(text_of(more | Json{{"stop", stop}, {"no_stop_trim", true}}).starts_with(before + stop));
}

TEST_F(ApiTest, RolloutsSayWhatEndedThem) {
  const auto meta = [&](Json params, Json more = Json::object()) {
    params["max_new_tokens"] = 200;
    return post_and_wait("/generate", rollout_of(std::move(params), std::move(more)))->json();
  };
  const auto matched = [&](Json params) { return meta(std::move(params))["meta_info"]["finish_reason"]["matched"]; };
  const Json whole = meta({}, {{"return_logprob", true}, {"return_text_in_logprobs", true}});
  const Json end = demo_model().llm().end_tokens().front(), fourth = whole["output_ids"][3];
  EXPECT_EQ(matched({{"stop", "nowhere"}}), end);
  EXPECT_EQ(matched({{"stop", "nowhere"}, {"stop_token_ids", {fourth}}}), fourth);
  EXPECT_EQ(matched({{"stop", {"，", "，"}}}), "，");
  std::string text;
  for (const Json& token : whole["meta_info"]["output_token_logprobs"]) {
    if (token[1] != end) text += token[2].get<std::string>();
  }
  EXPECT_EQ(text, whole["text"]);
}

TEST_F(ApiTest, RolloutsHaveTheBiasesOfTokens) {
  const Json biased{{"max_new_tokens", 3}, {"ignore_eos", true}, {"logit_bias", {{"400", 1000}}}};
  EXPECT_EQ(post_and_wait("/generate", rollout_of(biased))->json()["output_ids"], (Json{400, 400, 400}));
  const auto answer = post_and_wait("/generate", rollout_of({{"logit_bias", {{"a", 1}}}}));
  EXPECT_EQ(answer->json()["error"]["param"], "sampling_params.logit_bias");
}

TEST_F(ApiTest, ARolloutThatTheServerEndsSaysWhy) {
  const auto answer = post("/generate", R"({"text": "a", "stream": true, "sampling_params": {"max_new_tokens": 4000,
      "ignore_eos": true}})");
  ASSERT_TRUE(answer->wait_for_pieces(1));
  api.stop();
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->events().back()["error"]["message"], "the server is shutting down");
}

TEST_F(ApiTest, RolloutsStreamAllOfATextSoFar) {
  const Json params{{"max_new_tokens", 20}, {"n", 2}, {"stop", "，"}, {"no_stop_trim", true}};
  const Json whole = post_and_wait("/generate", rollout_of(params, {{"rid", "r"}}))->json();
  const auto answer = post_and_wait("/generate", rollout_of(params, {{"rid", "r"}, {"stream", true}}));
  EXPECT_EQ(answer->type(), "text/event-stream; charset=utf-8");
  const std::vector<Json> events = answer->events();
  EXPECT_TRUE(answer->has_done());
  std::vector<Json> last(2);
  for (Json event : events) {
    const std::size_t index = event["index"];
    event.erase("index");
    if (!last[index].is_null()) {
      EXPECT_TRUE(last[index]["meta_info"]["finish_reason"].is_null());
      EXPECT_TRUE(event["text"].get<std::string>().starts_with(last[index]["text"].get<std::string>()));
    }
    last[index] = std::move(event);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(last[i]["meta_info"]["id"], fmt::format("r_{}", i));
    last[i]["meta_info"]["cached_tokens"] = whole[i]["meta_info"]["cached_tokens"];
    EXPECT_EQ(last[i], whole[i]);
  }
}

Json continued(Json parameters, Json more = Json::object()) {
  if (!parameters.contains("max_new_tokens")) parameters["max_new_tokens"] = 8;
  return Json{{"inputs", "床前明月光，"}, {"parameters", std::move(parameters)}} | more;
}

TEST_F(ApiTest, TextGenerationAnswersTheClientsOfHuggingFace) {
  const Json whole = post_and_wait("/", continued({{"details", true}, {"decoder_input_details", true}}))->json()[0];
  const std::string text = whole["generated_text"];
  EXPECT_EQ(post_and_wait("/generate", continued({}))->json(), (Json{{"generated_text", text}}));
  EXPECT_EQ(whole["details"]["finish_reason"], "length");
  EXPECT_EQ(whole["details"]["seed"], nullptr);
  std::string prompt, tokens;
  for (const Json& token : whole["details"]["prefill"]) prompt += token["text"].get<std::string>();
  for (const Json& token : whole["details"]["tokens"]) tokens += token["text"].get<std::string>();
  EXPECT_EQ(prompt, "床前明月光，");
  EXPECT_EQ(tokens, text);
  EXPECT_EQ(complete({{"prompt", prompt}, {"max_tokens", 8}, {"temperature", 0}})->json()["choices"][0]["text"], text);
  EXPECT_EQ(post_and_wait("/", continued({{"return_full_text", true}}))->json()[0]["generated_text"], prompt + text);
}

TEST_F(ApiTest, TextGenerationStreamsTheTokens) {
  for (const Json& parameters :
       {Json{{"max_new_tokens", 8}}, Json{{"max_new_tokens", 200}}, Json{{"max_new_tokens", 200}, {"stop", {"。"}}}}) {
    const Json all{{"details", true}, {"top_n_tokens", 2}};
    const Json whole = post_and_wait("/generate", continued(parameters | all))->json();
    const auto answer = post_and_wait("/generate_stream", continued(parameters | all));
    EXPECT_EQ(post_and_wait("/", continued(parameters | all, {{"stream", true}}))->body(), answer->body());
    EXPECT_FALSE(answer->has_done());
    std::vector<Json> events = answer->events();
    std::string text;
    for (std::size_t i = 0; i < events.size(); ++i) {
      Json token = whole["details"]["tokens"][i];
      EXPECT_EQ(events[i]["index"], i + 1);
      EXPECT_EQ(events[i]["top_tokens"], whole["details"]["top_tokens"][i]);
      EXPECT_EQ(events[i]["token"]["id"], token["id"]);
      EXPECT_EQ(events[i]["token"]["logprob"], token["logprob"]);
      EXPECT_EQ(events[i]["details"].is_null(), i + 1 < events.size());
      if (!events[i]["token"]["special"].get<bool>()) text += events[i]["token"]["text"].get<std::string>();
    }
    EXPECT_EQ(text, whole["generated_text"]);
    EXPECT_EQ(events.back()["generated_text"], text);
    EXPECT_EQ(events.back()["details"]["finish_reason"], whole["details"]["finish_reason"]);
    EXPECT_EQ(whole["details"]["finish_reason"], parameters.contains("stop")         ? "stop_sequence"
                                                 : parameters["max_new_tokens"] == 8 ? "length"
                                                                                     : "eos_token");
  }
}

TEST_F(ApiTest, TextGenerationSamplesIfAnyStepIsOn) {
  const auto seed = [&](Json parameters) {
    parameters.update({{"details", true}, {"seed", 7}});
    return post_and_wait("/", continued(std::move(parameters)))->json()[0]["details"]["seed"];
  };
  EXPECT_EQ(seed({{"do_sample", false}, {"repetition_penalty", 1.1}, {"top_p", nullptr}}), nullptr);
  for (const Json& on : {Json{{"do_sample", true}}, Json{{"temperature", 0.5}, {"do_sample", false}},
                         Json{{"top_k", 5}}, Json{{"top_p", 0.9}}, Json{{"typical_p", 0.9}}}) {
    EXPECT_EQ(seed(on), 7) << on;
  }
}

TEST_F(ApiTest, TextGenerationStreamsEachTokenOnce) {
  const Json pattern{{"grammar", {{"type", "regex"}, {"value", "[a-c]{3}"}}}};
  const Json empty{{"grammar", {{"type", "regex"}, {"value", ""}}}};
  const Json starts_at_the_end{{"stop", {"。！"}}, {"max_new_tokens", 200}};
  for (const Json& parameters : {pattern, empty, starts_at_the_end}) {
    const Json whole = post_and_wait("/generate", continued(parameters | Json{{"details", true}}))->json();
    const std::vector<Json> events = post_and_wait("/generate_stream", continued(parameters))->events();
    const Json& details = whole["details"];
    EXPECT_EQ(details["finish_reason"], "eos_token") << parameters;
    EXPECT_EQ(events.back()["details"]["finish_reason"], "eos_token") << parameters;
    EXPECT_EQ(events.back()["details"]["generated_tokens"], details["tokens"].size());
    EXPECT_EQ(events.size(), std::max<std::size_t>(details["tokens"].size(), 1)) << parameters;
    std::string text;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Json& token = events[i]["token"];
      if (parameters != empty) {
        EXPECT_EQ(token["id"], details["tokens"][i]["id"]);
      }
      if (!token["special"].get<bool>()) text += token["text"].get<std::string>();
    }
    EXPECT_EQ(text, whole["generated_text"]);
  }
}

TEST_F(ApiTest, TextGenerationTakesAGrammarAndTheEndOfALongPrompt) {
  const Json pattern{{"grammar", {{"type", "regex"}, {"value", "[a-c]{3}"}}}};
  const auto stream = post_and_wait("/", continued(pattern, {{"stream", true}}));
  EXPECT_EQ(stream->events().back()["generated_text"].get<std::string>().find_first_not_of("abc"), std::string::npos);
  const Json cut = continued({{"truncate", 3}, {"details", true}});
  EXPECT_EQ(post_and_wait("/", cut)->json()[0]["details"]["input_length"], 3);
}

TEST_F(ApiTest, TheErrorsOfTextGenerationAreItsOwn) {
  for (const auto& [parameters, message] :
       {std::pair{Json{{"watermark", true}}, "parameters.watermark is true"},
        {Json{{"max_new_tokens", 0}}, "parameters.max_new_tokens is 0, expected a whole number, 1 to"},
        {Json{{"max_tokens", 1}}, "'max_tokens' is not a field"},
        {Json{{"grammar", {{"type", "x"}}}}, "parameters.grammar is"}}) {
    const auto answer = post_and_wait("/", continued(parameters));
    EXPECT_EQ(answer->status(), 400);
    EXPECT_NE(answer->json()["error"].get<std::string>().find(message), std::string::npos) << answer->body();
  }
  EXPECT_EQ(post_and_wait("/", Json::object())->json()["error"], "inputs is missing, expected a string");
  const auto generate = post_and_wait("/generate", continued({{"watermark", true}}));
  EXPECT_EQ(generate->status(), 400);
  EXPECT_TRUE(generate->json()["error"].is_string()) << generate->body();
  const auto stream = continued({{"decoder_input_details", true}});
  EXPECT_EQ(post_and_wait("/generate_stream", stream)->status(), 400);
  const Json endless{{"max_new_tokens", 4000}, {"ignore_eos_token", true}};
  const auto running = post("/generate_stream", continued(endless).dump());
  ASSERT_TRUE(running->wait_for_pieces(1));
  api.stop();
  ASSERT_TRUE(running->wait());
  EXPECT_EQ(running->events().back()["error"], "the server is shutting down");
}

TEST_F(ApiTest, EachOfManyTextsOfARolloutMayHaveAnId) {
  Json body{{"sampling_params", {{"max_new_tokens", 1}}}};
  for (int i = 0; i < 100; ++i) {
    body["input_ids"].push_back({7});
    body["rid"].push_back(fmt::format("id {}", i));
  }
  const auto answer = post_and_wait("/generate", body);
  ASSERT_EQ(answer->status(), 200) << answer->body();
  EXPECT_EQ(answer->json()[99]["meta_info"]["id"], "id 99");
}

TEST_F(ApiTest, RolloutsScoreThePromptFromAToken) {
  const Json ids{7, 8, 9, 10};
  const Json scored = complete({{"prompt", ids}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}})->json();
  const Json& expected = scored["choices"][0]["logprobs"]["token_logprobs"];
  for (std::size_t start = 0; start <= ids.size(); ++start) {
    const Json body{{"input_ids", ids},
                    {"return_logprob", true},
                    {"logprob_start_len", start},
                    {"top_logprobs_num", 1},
                    {"sampling_params", {{"max_new_tokens", 1}, {"temperature", 0}}}};
    const Json meta = post_and_wait("/generate", body)->json()["meta_info"];
    ASSERT_EQ(meta["input_token_logprobs"].size(), ids.size() - start) << meta;
    ASSERT_EQ(meta["input_top_logprobs"].size(), ids.size() - start) << meta;
    EXPECT_EQ(meta["output_token_logprobs"].size(), 1u);
    for (std::size_t i = start; i < ids.size(); ++i) {
      const Json& token = meta["input_token_logprobs"][i - start];
      EXPECT_EQ(token[1], ids[i]);
      EXPECT_EQ(token[0], i == start ? Json(nullptr) : expected[i]);
      EXPECT_EQ(meta["input_top_logprobs"][i - start].is_null(), i == start);
    }
  }
}

TEST_F(ApiTest, TakesTheRolloutsOfTrainersUnchanged) {
  for (
      const char* const body : {
          // slime, AReaL, verl, SGLang's benchmark
          R"({"input_ids": [7, 8], "return_logprob": true, "sampling_params": {"temperature": 1.0, "top_p": 1.0, "top_k": -1,
               "max_new_tokens": 2, "stop": null, "stop_token_ids": null, "skip_special_tokens": false, "no_stop_trim": true,
               "spaces_between_special_tokens": false}})",
          R"({"input_ids": [7, 8], "image_data": [], "return_logprob": true, "stream": false, "sampling_params":
               {"top_p": 1.0, "top_k": 1000, "max_new_tokens": 2, "temperature": 1.0, "stop_token_ids": [2],
               "frequency_penalty": 0.0}})",
          R"({"input_ids": [7, 8], "return_logprob": false, "logprob_start_len": -1, "token_ids_logprob": null, "rid": "a",
               "lora_path": null, "return_hidden_states": false, "sampling_params": {"n": 1, "max_new_tokens": 2,
               "presence_penalty": 0.0, "repetition_penalty": 1.0, "top_k": -1, "ignore_eos": false, "min_new_tokens": 0,
               "custom_params": {},
               "skip_special_tokens": true, "spaces_between_special_tokens": true}})",
          R"({"text": "a", "stream": true, "lora_path": "", "return_logprob": false, "logprob_start_len": -1,
               "sampling_params": {"temperature": 0.0, "max_new_tokens": 2, "ignore_eos": true}})",
      }) {
    EXPECT_EQ(post_and_wait("/generate", Json::parse(body))->status(), 200) << body;
  }
}

TEST_F(ApiTest, ANullLengthOfARolloutIsNoLimit) {
  ModelShelf::Settings with = settings();
  with.limits.kv_memory = std::size_t{1} << 30;
  ModelShelf own_models(with);
  Api own(own_models, options());
  const auto answer = post_to(own, "/generate", R"({"text": "a", "sampling_params": {"max_new_tokens": null,
      "min_new_tokens": 129, "regex": "ab"}})");
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->json()["text"], "ab") << answer->body();
}

TEST_F(ApiTest, HasTheRoutesThatProgramsForOtherServersAskFor) {
  for (const char* const path : {"/health_generate", "/ping", "/version", "/flush_cache"}) {
    EXPECT_EQ(get(path)->status(), 200) << path;
  }
  for (const char* const path : {"/model_info", "/get_model_info", "/server_info", "/get_server_info"}) {
    EXPECT_EQ(get(path)->json()["model_path"], "minimind-poet") << path;
  }
  const Json facts = get("/info")->json();
  EXPECT_EQ(facts["model_id"], "minimind-poet");
  EXPECT_EQ(facts["max_total_tokens"], get("/model_info")->json()["context_length"]);
  const Json info = get("/tokenizer_info")->json();
  EXPECT_EQ(info["eos_token"], "<|im_end|>");
  EXPECT_EQ(info["bos_token"], "<|im_start|>");
  const auto from_page = std::make_shared<FakeAnswer>();
  api.handle(
      {.method = "GET", .path = "/flush_cache", .query = "", .headers = {{"sec-fetch-site", "cross-site"}}, .body = ""},
      from_page);
  ASSERT_TRUE(from_page->wait());
  EXPECT_EQ(from_page->status(), 405) << "a page of another origin could";
}

HttpRequest json_request(const std::string& path, const std::string& body) {
  return {.method = "POST", .path = path, .query = "", .headers = {{"content-type", "application/json"}}, .body = body};
}

// The answer of a server with these options to a request for the weights of the path.
std::shared_ptr<FakeAnswer> update_weights(ModelShelf& models, const ApiOptions& options, const std::string& path) {
  Api own(models, options);
  const auto answer = std::make_shared<FakeAnswer>();
  own.handle(json_request("/update_weights_from_disk", Json{{"model_path", path}}.dump()), answer);
  EXPECT_TRUE(answer->wait());
  return answer;
}

TEST_F(ApiTest, KeepsItsWeightsIfTheFileIsBad) {
  const Json before = complete({{"seed", 3}})->json()["choices"];
  EXPECT_EQ(post_and_wait("/update_weights_from_disk", {{"model_path", "/nowhere"}})->status(), 403);
  const std::string other = MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth";
  EXPECT_EQ(post_and_wait("/update_weights_from_disk", {{"model_path", other}})->status(), 400);
  EXPECT_EQ(complete({{"seed", 3}})->json()["choices"], before);
  const std::string same = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  EXPECT_EQ(post_and_wait("/update_weights_from_disk", {{"model_path", same}})->json()["success"], true);
  EXPECT_EQ(post("/flush_cache", "")->wait(), true);
  EXPECT_TRUE(engine.wait_until_idle(std::chrono::seconds(5)));
  EXPECT_EQ(complete({{"seed", 3}})->json()["choices"], before);
}

TEST_F(ApiTest, LoadsWeightsOnlyFromItsFolders) {
  const TemporaryFolder folder;
  const std::string demo = MINIMIND_SOURCE_DIR "/weights/demo/model.pth", inside = folder.path() + "/new.pth",
                    link = folder.path() + "/link.pth";
  std::filesystem::copy_file(demo, inside);
  std::filesystem::create_symlink(demo, link);
  ApiOptions limited = options();
  limited.weights_folders = {folder.path()};
  ApiOptions none = options();
  none.weights_folders = {};
  const auto status = [&](const ApiOptions& its, const std::string& path) {
    return update_weights(models, its, path)->status();
  };
  EXPECT_EQ(status(limited, inside), 200);
  EXPECT_EQ(status(limited, demo), 403);
  EXPECT_EQ(status(limited, link), 403) << "the link leads out of the folder";
  EXPECT_EQ(status(limited, folder.path() + "/../x.pth"), 403);
  EXPECT_EQ(status(none, demo), 403);
}

TEST_F(ApiTest, OnlyTheLogHasWhatIsInAFile) {
  const TemporaryFolder folder;
  const std::string secret = folder.write("note.txt", "the password is swordfish\n");
  folder.write("hf/model.safetensors.index.json", R"({"weight_map": {"swordfish": 5}})");
  folder.write("hf2/config.json", R"({"model_type": "swordfish"})");
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/hf2/pytorch_model.bin");
  std::vector<std::string> log;
  ApiOptions limited = options();
  limited.weights_folders = {folder.path()};
  limited.log = [&](const std::string& line) { log.push_back(line); };
  for (const std::string& path : {secret, folder.path() + "/hf", folder.path() + "/hf2"}) {
    log.clear();
    const auto answer = update_weights(models, limited, path);
    EXPECT_EQ(answer->status(), 400) << path;
    EXPECT_EQ(answer->body().find("swordfish"), std::string::npos) << answer->body();
    ASSERT_EQ(log.size(), 1u) << path;
    EXPECT_NE(log[0].find("swordfish"), std::string::npos) << log[0];
  }
}

TEST_F(ApiTest, RejectsMoreTextThanItsLimitBeforeItIsRead) {
  ApiOptions small = options();
  small.text = 500;
  Api own(models, small);
  const std::string longer(501, 'x'), fitting(400, 'x');
  const auto status = [&](const std::string& path, const Json& body) {
    const auto answer = std::make_shared<FakeAnswer>();
    own.handle(json_request(path, body.dump()), answer);
    EXPECT_TRUE(answer->wait());
    if (answer->status() == 413) {
      EXPECT_NE(answer->body().find("--max-text"), std::string::npos) << answer->body();
    }
    return answer->status();
  };
  const Json user{{{"role", "user"}, {"content", "a"}}};
  EXPECT_EQ(status("/tokenize", {{"content", fitting}}), 200);
  EXPECT_EQ(status("/tokenize", {{"content", longer}}), 413);
  EXPECT_EQ(status("/detokenize", {{"tokens", std::vector<int>(501, 7)}}), 413);
  EXPECT_EQ(status("/v1/completions", {{"prompt", std::vector<std::string>(30, std::string(100, 'x'))}}), 413);
  EXPECT_EQ(status("/v1/completions", {{"prompt", std::vector<int>(501, 7)}, {"max_tokens", 1}}), 200) << "no text";
  EXPECT_EQ(status("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", longer}}}}}), 413);
  EXPECT_EQ(status("/v1/chat/completions", {{"messages", user}, {"tools", Json::array({{{"a", longer}}})}}), 413);
  EXPECT_EQ(status("/v1/chat/completions", {{"messages", user}, {"grammar", "root ::= \"" + longer + "\""}}), 413);
  EXPECT_EQ(status("/v1/chat/completions", {{"messages", user}, {"a", std::vector<Json>(501, Json::array())}}), 413);
  EXPECT_EQ(status("/apply-template", {{"messages", {{{"role", "user"}, {"content", longer}}}}}), 413);
  EXPECT_EQ(status("/generate", {{"text", longer}}), 413);
  EXPECT_EQ(status("/api/generate", {{"model", "minimind"}, {"prompt", longer}}), 413);
  EXPECT_EQ(status("/api/chat", {{"model", "minimind"}, {"messages", {{{"role", "user"}, {"content", longer}}}}}), 413);
}

TEST_F(ApiTest, ComparesEachTokenWithFewStrings) {
  const std::vector<std::string> many(65, "x"), large{std::string(1001, 'x')};
  const auto param = [&](const std::string& path, const Json& body) {
    const auto answer = post_and_wait(path, body);
    EXPECT_EQ(answer->status(), 400);
    const Json error = answer->json()["error"];
    return error.is_object() ? error["param"].get<std::string>() : error.get<std::string>();
  };
  for (const std::vector<std::string>& stop : {many, large}) {
    EXPECT_EQ(param("/v1/completions", {{"prompt", "a"}, {"stop", stop}}), "stop");
    EXPECT_EQ(param("/v1/completions", {{"prompt", "a"}, {"dry_sequence_breakers", stop}}), "dry_sequence_breakers");
    EXPECT_EQ(param("/generate", {{"text", "a"}, {"sampling_params", {{"stop", stop}}}}), "sampling_params.stop");
    EXPECT_NE(param("/api/generate", {{"model", "minimind"}, {"prompt", "a"}, {"options", {{"stop", stop}}}})
                  .find("options.stop is a list"),
              std::string::npos);
  }
  EXPECT_EQ(param("/generate", {{"text", "a"}, {"sampling_params", {{"stop_token_ids", std::vector<int>(1001, 5)}}}}),
            "sampling_params.stop_token_ids");
  EXPECT_EQ(param("/v1/completions", {{"prompt", "a"}, {"logit_bias", {{"05", 1}}}}), "logit_bias");
}

TEST_F(ApiTest, LimitsTheMemoryOfManyLongPrompts) {
  Json body{{"input_ids", std::vector<std::vector<int>>(64, std::vector<int>(1500, 7))},
            {"sampling_params", {{"n", 1024}, {"max_new_tokens", 1}}}};
  const auto answer = post_and_wait("/generate", body);
  EXPECT_EQ(answer->status(), 400);
  EXPECT_NE(answer->body().find("expected fewer or shorter prompts"), std::string::npos) << answer->body();
}

TEST_F(ApiTest, HealthFailsWhileTheEngineMakesNoProgress) {
  ApiOptions impatient = options();
  impatient.stuck_after = std::chrono::milliseconds(20);
  Api own(models, impatient);
  const auto health = [&] { return get_from(own, "/health"); };
  EXPECT_EQ(health()->status(), 200);
  HeldEngine held(engine);
  while (health()->status() == 200) std::this_thread::yield();
  const auto stuck = health();
  EXPECT_EQ(stuck->status(), 503);
  EXPECT_EQ(stuck->json()["status"], "stuck");
  EXPECT_NE(stuck->json()["reason"].get<std::string>().find("the engine has made no step for"), std::string::npos);
  held.release();
  EXPECT_EQ(health()->status(), 200);
}

TEST_F(ApiTest, ParsesLargeBodiesNextToSmallRequests) {
  std::string ids = "7";
  for (int i = 0; i < 2'000'000; ++i) ids += ",7";
  const auto large = post("/detokenize", R"({"tokens": [)" + ids + "]}");
  const auto small = post("/detokenize", R"({"tokens": [7]})");
  ASSERT_TRUE(small->wait());
  EXPECT_FALSE(large->has_ended());
  ASSERT_TRUE(large->wait());
  EXPECT_EQ(large->status(), 413);
}

// What the command line takes, every route takes, by the same names.
TEST_F(ApiTest, TakesTheSamplingParametersOfTheCommandLineOnEveryRoute) {
  Json parameters{{"temperature", 3}, {"typical_p", 0}, {"top_p", 0}, {"top_k", -1}, {"dry_multiplier", 0.5}};
  for (const char* const penalty : {"repeat_penalty", "repetition_penalty"}) {
    parameters[penalty] = 5;
    Json openai = parameters;
    openai.update({{"max_tokens", 2}, {"seed", INT64_MIN}, {"stop", "x"}});
    EXPECT_EQ(complete(openai)->status(), 200) << penalty;
    Json sglang = parameters;
    sglang.update({{"max_new_tokens", 2}, {"sampling_seed", INT64_MIN}, {"stop", "x"}});
    EXPECT_EQ(post_and_wait("/generate", {{"text", "江"}, {"sampling_params", sglang}})->status(), 200) << penalty;
    Json ollama = parameters;
    ollama.update({{"num_predict", 2}, {"seed", INT64_MIN}, {"stop", "x"}});
    EXPECT_EQ(post_and_wait("/api/generate", {{"model", "minimind"}, {"prompt", "江"}, {"options", ollama}})->status(),
              200)
        << penalty;
    parameters.erase(penalty);
  }
  EXPECT_EQ(
      post_and_wait("/generate", {{"text", "江"}, {"sampling_params", {{"typical_p", 2}}}})->json()["error"]["message"],
      "sampling_params.typical_p is 2, expected a number, 0 to 1");
}

TEST_F(ApiTest, TakesTheParametersOfAnApiByItsNamesAlone) {
  const auto refused = [&](const std::string& path, const Json& body) {
    const auto answer = post_and_wait(path, body);
    EXPECT_EQ(answer->status(), 400) << body << answer->body();
    return answer->body();
  };
  for (const char* const name : {"max_tokens", "max_completion_tokens", "num_predict", "seed"}) {
    refused("/generate", {{"text", "a"}, {"sampling_params", {{name, 1}}}});
  }
  for (const char* const name : {"max_tokens", "max_completion_tokens", "max_new_tokens", "sampling_seed"}) {
    refused("/api/generate", {{"model", "minimind"}, {"prompt", "a"}, {"options", {{name, 1}}}});
  }
  for (const char* const name : {"max_new_tokens", "num_predict", "sampling_seed"}) {
    refused("/v1/completions", {{"prompt", "a"}, {name, 1}});
  }
  EXPECT_NE(refused("/api/generate", {{"model", "minimind"}, {"prompt", "a"}, {"options", {{"num_predict", -3}}}})
                .find("options.num_predict is -3, expected a whole number, -2 to 1073741824"),
            std::string::npos);
  EXPECT_NE(chat({{"max_completion_tokens", 0}})
                ->body()
                .find("max_completion_tokens is 0, expected a whole number, 1 to 1073741824"),
            std::string::npos);
}

TEST_F(ApiTest, TakesBothNamesOfAParameterOnlyWithOneValue) {
  EXPECT_EQ(complete({{"repeat_penalty", 1.5}, {"repetition_penalty", 1.5}, {"max_tokens", 1}})->status(), 200);
  const auto answer = complete({{"repeat_penalty", 1.5}, {"repetition_penalty", 2}, {"max_tokens", 1}});
  EXPECT_EQ(answer->status(), 400);
  EXPECT_EQ(answer->json()["error"]["message"],
            "repeat_penalty is 1.5, but repetition_penalty is 2, expected one of them");
  EXPECT_EQ(answer->json()["error"]["param"], "repeat_penalty");
}

TEST_F(ApiTest, WorksOnLongSchemasNextToOtherRequests) {
  std::vector<std::shared_ptr<FakeAnswer>> slow;
  for (int i = 0; i < 5; ++i) {
    const std::string pattern = fmt::format("^([a-z]{{0,{0}}}[0-9]{{0,{0}}}|[a-f0-9]{{1,{0}}}){{1,32}}$", 150 + i);
    const Json body{{"messages", {{{"role", "user"}, {"content", "a"}}}},
                    {"response_format", format_of({{"type", "string"}, {"pattern", pattern}})}};
    slow.push_back(post("/v1/chat/completions", body.dump()));
  }
  EXPECT_EQ(complete({{"max_tokens", 1}})->status(), 200);
  EXPECT_FALSE(slow.back()->has_ended());
  EXPECT_EQ(chat({{"max_tokens", 4}, {"response_format", format_of({{"type", "integer"}})}})->status(), 200);
  EXPECT_FALSE(slow.back()->has_ended()) << "a short schema does not wait for long ones";
  for (const auto& answer : slow) {
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 400);
    EXPECT_NE(answer->body().find("the pattern is too complex"), std::string::npos) << answer->body();
  }
}

// Keeps the thread that sends its answer, or the first piece of it, until release().
class HoldingAnswer : public FakeAnswer {
 public:
  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    hold_first();
    FakeAnswer::send(status, content_type, std::move(body), extra);
  }
  void write(std::string piece) override {
    hold_first();
    FakeAnswer::write(std::move(piece));
  }
  void wait_until_held() { held_.get_future().wait(); }
  void release() { go_.set_value(); }

 private:
  void hold_first() {
    if (!is_first_.exchange(false)) return;
    held_.set_value();
    go_.get_future().wait();
  }

  std::atomic<bool> is_first_ = true;
  std::promise<void> held_, go_;
};

const std::string small_text = R"({"content": "a"})",
                  large_text = R"({"content": ")" + std::string(300'000, 'x') + R"("})";

// Keeps the thread that tokenizes such a body, that of brief requests or the other one, until release().
std::shared_ptr<HoldingAnswer> hold_thread(Api& api, const std::string& body) {
  auto holding = std::make_shared<HoldingAnswer>();
  post_to(api, "/tokenize", body, holding);
  holding->wait_until_held();
  return holding;
}

TEST_F(ApiTest, PreparesLargeRequestsNextToOthers) {
  const std::string only_counted = Json{{"content", std::string(9000, 'x')}}.dump();
  for (const std::string& body : {large_text, only_counted}) {
    const auto holding = hold_thread(api, body);
    EXPECT_EQ(complete({{"max_tokens", 1}})->status(), 200);
    EXPECT_EQ(post_and_wait("/tokenize", {{"content", "a"}})->status(), 200);
    EXPECT_FALSE(holding->has_ended());
    holding->release();
    ASSERT_TRUE(holding->wait());
    EXPECT_EQ(holding->status(), 200);
  }
}

TEST_F(ApiTest, TheEndOfOneTextOfAStreamHoldsUpNoOther) {
  const auto answer = std::make_shared<HoldingAnswer>();
  std::vector<TextJob> jobs;
  Completion::start(
      demo_model(), [&](std::vector<TextJob> given) { jobs = std::move(given); },
      read_request(Json{{"prompt", {"a", "b"}}, {"stream", true}, {"max_tokens", 1}}, false, {}),
      [](std::size_t) { return std::uint64_t{0}; }, answer);
  const auto end = [&](std::size_t text) { jobs[text].on_end({.tokens = {7}, .text = "x"}, nullptr); };
  std::future<void> first = std::async(std::launch::async, end, 0);
  answer->wait_until_held();
  std::future<void> second = std::async(std::launch::async, end, 1);
  EXPECT_EQ(second.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_FALSE(answer->has_ended());
  answer->release();
  first.get();
  EXPECT_TRUE(answer->has_ended());
  EXPECT_EQ(answer->events().size(), 2u) << "the end of each";
  EXPECT_TRUE(answer->has_done());
}

TEST(AnswerReaderTest, GivesManyScoresInParts) {
  const Request request = read_request(Json{{"prompt", "a"}, {"logprobs", 4}}, false, {});
  const auto task = std::make_shared<const TextTask>(demo_model().tasks(request, 0, 0).front());
  AnswerReader reader(demo_model(), task);
  Generated generated{.tokens = {}, .text = std::string(1500, 'a')};
  generated.scores.resize(1500, {.token = {demo_model().tokenizer().encode("a").front(), -1}, .top = {}});
  EXPECT_EQ(reader.push(generated.text, generated.scores).scores.size(), 1000u) << "5 numbers each";
  const AnswerReader::Piece rest = reader.finish(generated);
  EXPECT_EQ(rest.scores.data(), &generated.scores[1000]);
  EXPECT_EQ(rest.scores.size(), 500u);
}

// Those of the line break that models write behind a call.
TEST(ResponseItemsTest, ScoresBehindACallMakeNoMessage) {
  ResponseItems items([](std::string_view, const std::string&) {});
  items.add({.kind = AnswerEvent::Kind::tool_call, .text = "", .call = {.id = "", .name = "f", .arguments = "{}"}},
            Json::array());
  items.add_logprobs({{{"token", "\n"}}});
  items.finish(false, false);
  ASSERT_EQ(items.items().size(), 1u);
  EXPECT_EQ(Json::parse(items.items()[0].json)["type"], "function_call");
}

// All log-probabilities of a text are in its end again, for which others wait.
TEST(ResponseItemsTest, TheEndOfATextTakesLessTimeThanItsPieces) {
  Json logprobs = Json::array();
  for (int i = 0; i < 20'000; ++i) logprobs.push_back({{"token", "a"}, {"logprob", -1.5}, {"bytes", {97}}});
  std::size_t bytes = 0;
  ResponseItems items([&](std::string_view, const std::string& members) { bytes += members.size(); });
  const std::clock_t start = std::clock();
  items.add({.kind = AnswerEvent::Kind::text, .text = "a", .call = {}}, logprobs);
  const std::clock_t added = std::clock();
  items.finish(false, false);
  EXPECT_LT(std::clock() - added, added - start);
  EXPECT_GT(bytes, 4 * 20'000 * std::string_view(R"({"token": "a", "logprob": -1.5, "bytes": [97]}, )").size() - 100);
}

TEST_F(ApiTest, PreparesManyTextsNextToOthers) {
  const auto holding = hold_thread(api, large_text);
  const auto rollout = [&](int texts) {
    return post("/generate", Json{{"text", "a"}, {"sampling_params", {{"n", texts}, {"max_new_tokens", 1}}}}.dump());
  };
  const auto many = rollout(65);
  EXPECT_TRUE(rollout(64)->wait());
  EXPECT_FALSE(many->has_ended());
  holding->release();
  ASSERT_TRUE(many->wait());
  EXPECT_EQ(many->json().size(), 65u);
}

// Writes its name when it is sent.
class NamedAnswer : public FakeAnswer {
 public:
  NamedAnswer(std::string& names, char name) : names_(names), name_(name) {}
  void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    names_ += name_;
    FakeAnswer::send(status, content_type, std::move(body), extra);
  }

 private:
  std::string& names_;
  const char name_;
};

TEST_F(ApiTest, ReadsLongPromptsForPenaltiesNextToOthers) {
  const auto holding = hold_thread(api, large_text);
  const std::string half(3000, '~');
  const auto ask = [&](const Json& prompt, double dry) {
    return post("/v1/completions", Json{{"prompt", prompt}, {"max_tokens", 1}, {"dry_multiplier", dry}}.dump());
  };
  const std::size_t tokens = demo_model().tokenizer().encode(half).size();
  ASSERT_GT(2 * tokens, 4096u);
  ASSERT_LE(tokens, 4096u);
  const auto late = ask({half, half}, 1);
  EXPECT_TRUE(ask({half, half}, 0)->wait());
  EXPECT_TRUE(ask(half, 1)->wait());
  EXPECT_FALSE(late->has_ended());
  holding->release();
  EXPECT_TRUE(late->wait());
  EXPECT_EQ(late->status(), 200);
  const Json next{{"prompt", "ab"}, {"max_tokens", 9}, {"temperature", 1.5}}, seeded = next | Json{{"seed", 7 + 5}};
  const Json own = post_and_wait("/v1/completions", next)->json()["choices"];
  EXPECT_EQ(own, post_and_wait("/v1/completions", seeded)->json()["choices"]) << "five texts came before it";
}

TEST_F(ApiTest, PreparesALargeRequestBeforeThoseThatTurnOutToTakeLong) {
  const auto holding = hold_thread(api, large_text);
  std::string order;
  const auto named = [&](char name) { return std::make_shared<NamedAnswer>(order, name); };
  const std::string large = Json{{"content", std::string(9000, 'x')}}.dump();
  std::vector<std::shared_ptr<FakeAnswer>> all;
  const std::string other = Json{{"model_path", MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth"}}.dump();
  for (const char name : {'1', '2', '3'}) all.push_back(post("/update_weights_from_disk", other, named(name)));
  EXPECT_EQ(post_and_wait("/tokenize", {{"content", "a"}})->status(), 200);  // they wait for the other thread now
  for (const char name : {'a', 'b'}) all.push_back(post("/tokenize", large, named(name)));
  holding->release();
  for (const auto& answer : all) ASSERT_TRUE(answer->wait());
  EXPECT_EQ(order, "a1b23");
}

TEST_F(ApiTest, EndsTheWorkForAClientThatIsGone) {
  const Json body{{"messages", {{{"role", "user"}, {"content", "a"}}}},
                  {"response_format",
                   format_of({{"type", "string"}, {"pattern", "^([a-z]{0,170}[0-9]{0,170}|[a-f0-9]{1,170}){1,32}$"}})}};
  const auto slow = post("/v1/chat/completions", body.dump());
  EXPECT_EQ(complete({{"max_tokens", 1}})->status(), 200);
  slow->disconnect();
  ASSERT_TRUE(post("/tokenize", large_text)->wait()) << "comes after it";
  EXPECT_FALSE(slow->has_ended());
}

TEST_F(ApiTest, RejectsWhatIsNotPreparedWhenItShutsDown) {
  HeldEngine held(engine);
  const auto current = post("/v1/inside", R"({"text": "a"})");  // waits for the engine, and large ones for it
  const auto holding = hold_thread(api, small_text);
  const auto next = post("/v1/completions", R"({"prompt": "a"})"), large = post("/tokenize", large_text);
  api.drain();
  for (const auto& answer : {current, next, large}) {
    EXPECT_TRUE(answer->has_ended());
    EXPECT_EQ(answer->status(), 503);
  }
  holding->release();
  held.release();
}

TEST_F(ApiTest, PreparesNothingForAClientThatHasGone) {
  const auto holding = hold_thread(api, small_text);
  const auto gone = post("/v1/completions", R"({"prompt": "a", "max_tokens": 2})");
  gone->disconnect();
  holding->release();
  EXPECT_EQ(complete({{"max_tokens", 2}})->status(), 200);
  EXPECT_TRUE(engine.wait_until_idle(std::chrono::seconds(20)));
  EXPECT_EQ(engine.counts().texts, 1u);
  EXPECT_FALSE(gone->has_ended());
}

TEST(Api, AClientLeavesPlacesToOthers) {
  ModelShelf::Settings few = settings();
  few.limits.parallel = 1;
  few.limits.queue = 7;
  ModelShelf models(few);
  Api api(models, options());
  const auto ask = [&](const std::string& client, std::size_t max_tokens) {
    const auto answer = std::make_shared<FakeAnswer>();
    const Json json{{"prompt", "a"}, {"max_tokens", max_tokens}, {"ignore_eos", true}, {"stream", true}};
    std::string body = json.dump();
    body.resize(200, ' ');  // those of one size are prepared in order
    api.handle({.method = "POST",
                .path = "/v1/completions",
                .query = "",
                .headers = {{"content-type", "application/json"}},
                .body = body,
                .client = client},
               answer);
    return answer;
  };
  std::vector<std::shared_ptr<FakeAnswer>> running{ask("a", 4000)};
  ASSERT_TRUE(running[0]->wait_for_pieces(2));
  while (running.size() < 7) running.push_back(ask("a", 4000));
  const auto rejected = ask("a", 1), others = ask("b", 1);
  ASSERT_TRUE(rejected->wait());
  EXPECT_EQ(rejected->status(), 429) << rejected->body();
  EXPECT_EQ(rejected->headers(), (HttpHeaders{{"Retry-After", "1"}}));
  for (const auto& answer : running) answer->disconnect();
  ASSERT_TRUE(others->wait());
  EXPECT_EQ(others->status(), 200) << others->body();
}

TEST_F(ApiTest, RejectsRequestsThatItHasNoRoomFor) {
  ApiOptions small = options();
  small.waiting_bytes = 1000;
  small.requests = 3;
  Api own(models, small);
  const std::string body = R"({"content": ")" + std::string(700, 'x') + R"("})";
  const auto larger = post_to(own, "/tokenize", R"({"content": ")" + std::string(1500, 'x') + R"("})");
  ASSERT_TRUE(larger->wait());
  EXPECT_EQ(larger->status(), 200) << "alone, a body may be larger than all that wait";
  const auto fits = [&] {
    const auto answer = post_to(own, "/tokenize", small_text);
    return answer->wait() && answer->status() == 200;
  };
  bool has_room = false;  // the larger one holds its room for a moment
  for (int i = 0; i < 100'000 && !has_room; ++i) has_room = fits();
  ASSERT_TRUE(has_room);
  const auto holding = hold_thread(own, small_text);
  const auto large = post_to(own, "/tokenize", body);
  std::vector<std::shared_ptr<FakeAnswer>> waiting{holding, large};
  const auto expect_rejected = [](const FakeAnswer& answer) {
    ASSERT_TRUE(answer.has_ended());
    EXPECT_EQ(answer.status(), 429);
    EXPECT_EQ(answer.headers(), (HttpHeaders{{"Retry-After", "1"}}));
    EXPECT_EQ(answer.json()["error"]["code"], "queue_full");
  };
  expect_rejected(*post_to(own, "/tokenize", body));
  std::shared_ptr<FakeAnswer> rejected;
  while (!rejected && waiting.size() < 10) {
    const auto next = post_to(own, "/tokenize", small_text);
    if (next->has_ended()) {
      rejected = next;
    } else {
      waiting.push_back(next);
    }
  }
  ASSERT_TRUE(rejected) << "the number of requests is limited, too";
  expect_rejected(*rejected);
  holding->release();
  for (const auto& answer : waiting) {
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), answer == large ? 429 : 200) << "a smaller one has got its place";
  }
  const auto again = post_to(own, "/tokenize", body);
  ASSERT_TRUE(again->wait());
  EXPECT_EQ(again->status(), 200) << "there is room again";
}

TEST_F(ApiTest, ATextMayEndAfterIt) {
  HeldEngine held(engine);
  std::shared_ptr<FakeAnswer> answer;
  {
    Api own(models, options());
    answer = post_to(own, "/v1/completions", R"({"prompt": "a", "max_tokens": 1})");
    while (engine.is_idle()) std::this_thread::yield();
  }
  held.release();
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 200);
}

TEST_F(ApiTest, HealthFailsWhileOneRequestIsReadForTooLong) {
  ApiOptions impatient = options();
  impatient.stuck_after = std::chrono::milliseconds(20);
  Api own(models, impatient);
  const auto health = [&] { return get_from(own, "/health"); };
  const auto holding = hold_thread(own, small_text);
  while (health()->status() == 200) std::this_thread::yield();
  const auto stuck = health();
  holding->release();
  EXPECT_EQ(stuck->status(), 503);
  EXPECT_NE(stuck->body().find("a request has been read for"), std::string::npos) << stuck->body();
  ASSERT_TRUE(holding->wait());
  while (health()->status() == 503) std::this_thread::yield();
}

TEST_F(ApiTest, OneUpdateOfTheWeightsWaitsForOlderTexts) {
  const std::string weights = Json{{"model_path", MINIMIND_SOURCE_DIR "/weights/demo/model.pth"}}.dump();
  const auto running =
      post("/v1/completions", R"({"prompt": "a", "max_tokens": 4000, "ignore_eos": true, "stream": true})");
  ASSERT_TRUE(running->wait_for_pieces(2));
  const auto first = post("/update_weights_from_disk", weights);
  ASSERT_TRUE(first->wait());
  EXPECT_EQ(first->status(), 200);
  const auto waiting = post("/update_weights_from_disk", weights), more = post("/update_weights_from_disk", weights);
  ASSERT_TRUE(more->wait());
  EXPECT_EQ(more->status(), 429) << more->body();
  EXPECT_FALSE(running->has_ended()) << "with the weights that it began with";
  EXPECT_FALSE(waiting->has_ended());
  api.drain();
  ASSERT_TRUE(waiting->wait());
  EXPECT_EQ(waiting->status(), 503) << waiting->body();
  running->disconnect();
}

TEST_F(ApiTest, RequestsWithoutASeedDiffer) {
  ApiOptions unseeded = options();
  unseeded.seed = std::nullopt;
  Api own(models, unseeded);
  std::set<std::string> texts;
  for (int i = 0; i < 4; ++i) {
    const auto answer =
        post_to(own, "/v1/completions", R"({"prompt": "a", "max_tokens": 30, "temperature": 2, "ignore_eos": true})");
    ASSERT_TRUE(answer->wait());
    texts.insert(answer->json()["choices"][0]["text"]);
  }
  EXPECT_EQ(texts.size(), 4u);
}

TEST_F(ApiTest, OllamasRoutesRequireAModel) {
  for (const char* const path : {"/api/chat", "/api/generate", "/api/show"}) {
    const auto answer = post_and_wait(path, Json::object());
    EXPECT_EQ(answer->status(), 400) << path;
    EXPECT_EQ(answer->json()["error"], "model is missing, expected a name that /api/tags lists");
  }
}

TEST_F(ApiTest, NumbersTheCallsOfAnAnswerInOllamasWay) {
  ApiOptions calling = options();
  calling.defaults.parameters.sampling.logit_bias = {{*demo_model().tokenizer().id_of("<tool_call>"), 100}};
  Api own(models, std::move(calling));
  const Json function{{"name", "f"}, {"strict", true}, {"parameters", {{"const", Json::object()}}}};
  for (const bool stream : {true, false}) {
    const Json body{{"model", "minimind"},
                    {"messages", {from_user}},
                    {"tools", {{{"type", "function"}, {"function", function}}}},
                    {"stream", stream},
                    {"options", {{"num_predict", 120}}}};
    const auto answer = post_to(own, "/api/chat", body.dump());
    ASSERT_TRUE(answer->wait());
    Json calls = Json::array();
    std::istringstream lines(answer->body());
    for (std::string line; std::getline(lines, line);) {
      const Json message = Json::parse(line).value("message", Json::object());
      for (const Json& call : message.value("tool_calls", Json::array())) calls.push_back(call);
    }
    ASSERT_GE(calls.size(), 2u) << answer->body();
    std::set<std::string> ids;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_TRUE(calls[i]["id"].get<std::string>().starts_with("call_")) << calls;
      EXPECT_TRUE(ids.insert(calls[i]["id"]).second) << calls;
      EXPECT_EQ(calls[i]["function"], (Json{{"index", i}, {"name", "f"}, {"arguments", Json::object()}}));
    }
    Json messages{from_user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}}};
    for (const Json& call : calls) {
      messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "1"}});
    }
    EXPECT_EQ(post_and_wait("/api/chat", {{"model", "minimind"}, {"messages", messages}})->status(), 200);
  }
}

// Its arguments are no object, which Ollama's have to be. An error of it on the engine's thread would end the server.
TEST_F(ApiTest, LeavesOutACallThatIsCutOffForOllama) {
  ApiOptions calling = options();
  calling.defaults.parameters.sampling.logit_bias = {{*demo_model().tokenizer().id_of("<tool_call>"), 100}};
  Api own(models, std::move(calling));
  const Json city{{"type", "string"}, {"minLength", 60}};
  const Json schema{{"type", "object"}, {"properties", {{"city", city}}}, {"required", {"city"}}};
  const Json function{{"name", "f"}, {"strict", true}, {"parameters", schema}};
  for (const auto& [stream, limit] : {std::pair{true, 14}, {false, 14}, {true, 30}, {false, 30}}) {
    const Json body{{"model", "minimind"},
                    {"messages", {from_user}},
                    {"tools", {{{"type", "function"}, {"function", function}}}},
                    {"stream", stream},
                    {"options", {{"num_predict", limit}}}};
    const auto answer = post_to(own, "/api/chat", body.dump());
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200) << answer->body();
    EXPECT_EQ(answer->body().find("tool_calls"), std::string::npos) << answer->body();
    EXPECT_NE(answer->body().find(R"("done_reason": "length")"), std::string::npos) << answer->body();
  }
}

// As Ollama's documented curl sends it.
TEST_F(ApiTest, TakesBodiesOfOllamaWithoutTheTypeOfJson) {
  for (const HttpHeaders& types : {HttpHeaders{}, {{"content-type", "application/x-www-form-urlencoded"}}}) {
    const auto answer = std::make_shared<FakeAnswer>();
    api.handle({.method = "POST",
                .path = "/api/generate",
                .query = "",
                .headers = {types.begin(), types.end()},
                .body = R"({"model": "minimind", "prompt": "a", "stream": false, "options": {"num_predict": 1}})"},
               answer);
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 200) << answer->body();
  }
}

TEST_F(ApiTest, ShowsTheModelToOllama) {
  const Json shown = post_and_wait("/api/show", {{"name", "minimind-poet:latest"}, {"verbose", true}})->json();
  const auto positions = demo_model().llm().positions;
  EXPECT_EQ(shown["model_info"]["general.architecture"], "minimind");
  EXPECT_EQ(shown["model_info"]["minimind.context_length"], positions);
  EXPECT_EQ(shown["model_info"]["general.parameter_count"], demo_model().facts().parameters);
  EXPECT_EQ(shown["details"]["families"], Json::array({"minimind"})) << shown;
  EXPECT_NE(shown["details"]["quantization_level"], "");
  EXPECT_NE(shown["parameters"].get<std::string>().find("num_predict 16\n"), std::string::npos) << shown;
  EXPECT_NE(shown["template"].get<std::string>().find("{{ .Prompt }}"), std::string::npos) << shown;
  EXPECT_EQ(shown["capabilities"][0], "completion");
  const Json own{{"model", "minimind"}, {"name", ""}, {"system", ""}, {"template", ""}, {"options", nullptr}};
  EXPECT_EQ(post_and_wait("/api/show", own)->json(), shown) << "as Ollama's own client asks";
  for (const Json& other : {Json{{"template", "x"}}, Json{{"system", "x"}}, Json{{"options", {{"seed", 1}}}}}) {
    EXPECT_EQ(post_and_wait("/api/show", own | other)->status(), 400) << other;
  }
  const Json running = get("/api/ps")->json()["models"];
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0]["name"], "minimind-poet");
  EXPECT_EQ(running[0]["context_length"], positions);
}

TEST_F(ApiTest, GivesLogProbabilitiesInOllamasWay) {
  const Json body{
      {"model", "minimind"}, {"logprobs", true}, {"top_logprobs", 2}, {"options", {{"num_predict", 12}, {"seed", 3}}}};
  const Json message{{"role", "user"}, {"content", "江上"}};
  for (const auto& [path, more] : {std::pair<std::string, Json>{"/api/chat", {{"messages", {message}}}},
                                   {"/api/generate", {{"prompt", "江上"}, {"raw", true}}}}) {
    const Json whole = post_and_wait(path, body | more | Json{{"stream", false}})->json();
    std::string joined;
    for (const Json& token : whole["logprobs"]) {
      EXPECT_EQ(token["top_logprobs"].size(), 2u);
      for (const Json& byte : token["bytes"]) joined += static_cast<char>(byte.get<int>());
    }
    EXPECT_EQ(joined, path == "/api/chat" ? whole["message"]["content"] : whole["response"]) << whole;
    EXPECT_FALSE(joined.empty());
    Json streamed = Json::array();
    std::istringstream lines(post_and_wait(path, body | more)->body());
    for (std::string line; std::getline(lines, line);) {
      const Json parsed = Json::parse(line);
      if (!parsed.contains("logprobs")) continue;
      for (const Json& token : parsed["logprobs"]) streamed.push_back(token);
    }
    EXPECT_EQ(streamed, whole["logprobs"]);
    EXPECT_FALSE(post_and_wait(path, body | more | Json{{"logprobs", false}, {"top_logprobs", 0}, {"stream", false}})
                     ->json()
                     .contains("logprobs"));
    EXPECT_EQ(post_and_wait(path, body | more | Json{{"logprobs", false}})->status(), 400);
  }
}

TEST_F(ApiTest, SaysWhyItHasNoRouteForWhatTheModelCannotDo) {
  for (const char* const path : {"/v1/embeddings",
                                 "/v1/rerank",
                                 "/v1/images/generations",
                                 "/v1/audio/speech",
                                 "/v1/files",
                                 "/v2/rerank",
                                 "/score",
                                 "/pooling",
                                 "/v1/classify",
                                 "/v1/responses/compact",
                                 "/v1/conversations",
                                 "/v1/videos",
                                 "/v1/evals",
                                 "/v1/containers",
                                 "/api/embed",
                                 "/api/pull",
                                 "/completion",
                                 "/props",
                                 "/v1/props",
                                 "/slots",
                                 "/infill",
                                 "/lora-adapters",
                                 "/v1/messages",
                                 "/v1/messages/count_tokens",
                                 "/v1/fim/completions",
                                 "/v1/fine-tunes",
                                 "/v1/edits",
                                 "/v1/tts",
                                 "/v1/agent",
                                 "/v1/agents/completions",
                                 "/api/v1/chat/completions",
                                 "/v1beta/models/m:generateContent",
                                 "/v2/chat",
                                 "/api/v1/generate",
                                 "/api/extra/generate/stream",
                                 "/abort_request",
                                 "/pause_generation",
                                 "/release_memory_occupation",
                                 "/update_weights_from_tensor",
                                 "/load"}) {
    const auto answer = post_and_wait(path, {{"model", "minimind"}});
    EXPECT_EQ(answer->status(), 404) << path;
    const Json error = answer->json()["error"];
    const bool is_ollamas = std::string_view(path).starts_with("/api/");
    EXPECT_EQ(error.is_string(), is_ollamas) << error;
    const std::string message = is_ollamas ? error : error["message"];
    EXPECT_TRUE(message.starts_with(fmt::format("there is no route '{}': ", path))) << message;
  }
  EXPECT_EQ(get("/nowhere")->json()["error"]["message"], "there is no route '/nowhere'");
}

TEST_F(ApiTest, GivesEveryErrorOfOllamasRoutesInItsForm) {
  const auto is_ollamas = [](FakeAnswer& answer, int status) {
    ASSERT_TRUE(answer.wait());
    EXPECT_EQ(answer.status(), status) << answer.body();
    EXPECT_TRUE(answer.json()["error"].is_string()) << answer.body();
  };
  for (const std::string path : {"/api/chat", "/api/generate"}) {
    is_ollamas(*post(path, "{"), 400);
    is_ollamas(*post(path, "[1]"), 400);
    is_ollamas(*post(path, R"({"model": "minimind", "options": {"seed": 1180591620717411303424}})"), 400);
    is_ollamas(*post(path, R"({"model": ")" + std::string(600'000, 'x') + "\"}"), 413);
    is_ollamas(*get(path), 405);
    for (const char* const header : {"origin", "sec-fetch-site"}) {
      const auto untyped = std::make_shared<FakeAnswer>();
      api.handle({.method = "POST", .path = path, .query = "", .headers = {{header, "null"}}, .body = "{}"}, untyped);
      is_ollamas(*untyped, 415);
    }
  }
  api.drain();
  is_ollamas(*post("/api/chat", "{}"), 503);
  is_ollamas(*get("/api/tags"), 503);
}

// A seed for each text: none for a request that only loads a model, nor for work that is begun again because it is
// long.
TEST_F(ApiTest, TakesASeedForEachText) {
  const Json schema{{"type", "string"}, {"pattern", "^([a-m]{0,90}[n-z]{0,90}){1,12}$"}};
  {
    const BriefWork brief;
    EXPECT_THROW(schema_grammar(schema, "format"), LongWork);
  }
  const Json random{{"num_predict", 24}, {"temperature", 3}};
  const Json ollama{{"model", "minimind"}, {"prompt", "a"}, {"stream", false}, {"format", schema}, {"options", random}};
  const auto first_text = [&] {
    Api own(models, options());
    EXPECT_TRUE(post_to(own, "/api/generate", R"({"model": "minimind", "prompt": ""})")->wait());
    const auto answer = post_to(own, "/api/generate", ollama.dump());
    EXPECT_TRUE(answer->wait());
    return answer->json().value("response", answer->body());
  };
  const std::string compiled_now = first_text();
  EXPECT_EQ(first_text(), compiled_now) << "the schema is known";
  Json body{{"max_tokens", 12}, {"temperature", 3}};
  const Json rollout{{"input_ids", Json::parse("[[7], [8]]")}, {"sampling_params", {{"n", 2}, {"max_new_tokens", 1}}}};
  EXPECT_EQ(post_and_wait("/generate", rollout)->status(), 200);
  const Json text = complete(body)->json()["choices"];
  body["seed"] = 7 + 4;
  EXPECT_EQ(complete(body)->json()["choices"], text);
}

TEST_F(ApiTest, ChecksFieldsOfOllamaByTheirNames) {
  const auto error_of_body = [&](const std::string& path, Json body) {
    body["model"] = "minimind";
    const auto answer = post_and_wait(path, body);
    EXPECT_EQ(answer->status(), 400) << body << answer->body();
    EXPECT_TRUE(answer->json()["error"].is_string()) << body << answer->body();
    return answer->body();
  };
  const Json message{{"role", "user"}, {"content", "a"}};
  const std::vector<std::pair<Json, std::string>> chats{
      {{{"messages", "a"}}, "messages"},
      {{{"messages", {{{"role", "user"}, {"content", "a"}, {"images", {"iVBO"}}}}}}, "images"},
      {{{"messages", {message}}, {"think", "much"}}, "think"},
      {{{"messages", {message}}, {"format", "xml"}}, "format"},
      {{{"messages", {message}}, {"format", 1}}, "format"},
      {{{"messages", {message}}, {"tools", "f"}}, "tools"},
      {{{"messages", {message}}, {"options", {1}}}, "options"},
      {{{"messages", {message}}, {"options", {{"num_ctx", 0}}}}, "options.num_ctx"},
      {{{"messages", {message}}, {"options", {{"num_predict", -3}}}}, "options.num_predict"},
      {{{"messages", {message}}, {"options", {{"seed", 1.5}}}}, "options.seed"},
      {{{"messages", {message}}, {"options", {{"stop", 1}}}}, "options.stop"},
      {{{"messages", {message}}, {"options", {{"mirostat", 1}}}}, "options.mirostat"},
      {{{"messages", {message}}, {"options", {{"embedding_only", true}}}}, "options.embedding_only"},
      {{{"messages", {message}}, {"options", {{"tool_choice", "required"}}}}, "options.tool_choice"},
      {{{"messages", {message}}, {"options", {{"tempreature", 1}}}}, "tempreature"},
      {{{"messages", {message}}, {"stream", 1}}, "stream"},
      {{{"messages", {message}}, {"prompt", "a"}}, "prompt"}};
  for (const auto& [body, field] : chats) {
    EXPECT_NE(error_of_body("/api/chat", body).find(field), std::string::npos)
        << body << error_of_body("/api/chat", body);
  }
  const std::vector<std::pair<Json, std::string>> texts{{{{"prompt", 1}}, "prompt"},
                                                        {{{"prompt", "a"}, {"suffix", "b"}}, "suffix"},
                                                        {{{"prompt", "a"}, {"images", {"iVBO"}}}, "images"},
                                                        {{{"prompt", "a"}, {"raw", 1}}, "raw"},
                                                        {{{"prompt", "a"}, {"context", {1}}}, "context"},
                                                        {{{"prompt", "a"}, {"messages", {message}}}, "messages"}};
  for (const auto& [body, field] : texts) {
    EXPECT_NE(error_of_body("/api/generate", body).find(field), std::string::npos)
        << body << error_of_body("/api/generate", body);
  }
}

TEST_F(ApiTest, PenalizesTheLastTokens) {
  const auto text = [&](const Json& options) {
    const Json all = Json{{"num_predict", 12}, {"temperature", 0}} | options;
    const auto answer =
        post_and_wait("/api/generate", {{"model", "minimind"}, {"prompt", "a"}, {"stream", false}, {"options", all}});
    EXPECT_EQ(answer->status(), 200) << answer->body();
    return answer->json()["response"].get<std::string>();
  };
  const Json penalty{{"repeat_penalty", 50}};
  EXPECT_EQ(text(penalty | Json{{"repeat_last_n", 64}}), text(penalty | Json{{"repeat_last_n", -1}}));
  EXPECT_NE(text(penalty | Json{{"repeat_last_n", 2}}), text(penalty | Json{{"repeat_last_n", -1}}));
}

TEST_F(ApiTest, PenaltiesOfNoTokensAreOff) {
  const Json plain{{"seed", 3}, {"max_tokens", 12}};
  const Json text = complete(plain)->json()["choices"];
  for (const char* const penalty : {"repeat_penalty", "presence_penalty", "frequency_penalty"}) {
    EXPECT_EQ(complete(plain | Json{{penalty, 50}, {"repeat_last_n", 0}})->json()["choices"], text) << penalty;
    EXPECT_NE(complete(plain | Json{{penalty, 50}, {"repeat_last_n", -1}})->json()["choices"], text) << penalty;
  }
}

TEST_F(ApiTest, TakesEveryFormOfAnOllamaRequest) {
  const Json user{{"role", "user"}, {"content", "a"}};
  const auto ask = [&](const std::string& path, Json body) {
    body.update({{"model", "minimind"}, {"stream", false}, {"options", {{"num_predict", 2}}}});
    const auto answer = post_and_wait(path, body);
    EXPECT_EQ(answer->status(), 200) << body << answer->body();
    return answer->json();
  };
  for (const Json& think :
       {Json(true), Json(false), Json("low"), Json("medium"), Json("high"), Json("max"), Json(nullptr)}) {
    EXPECT_TRUE(ask("/api/chat", {{"messages", {user}}, {"think", think}})["message"].is_object()) << think;
  }
  for (const Json& nothing : {Json(nullptr), Json::array()}) {
    EXPECT_EQ(ask("/api/chat", {{"messages", nothing}})["done_reason"], "load");
  }
  const Json call{{"function", {{"name", "f"}, {"arguments", Json::object()}, {"index", 0}}}};
  const Json called{{"role", "assistant"}, {"content", ""}, {"thinking", "t"}, {"tool_calls", {call}}};
  const Json result{{"role", "tool"}, {"tool_name", "f"}, {"content", "1"}};
  const Json capital{{"role", "User"}, {"content", "a"}};
  EXPECT_EQ(ask("/api/chat", {{"messages", {capital}}})["prompt_eval_count"],
            ask("/api/chat", {{"messages", {user}}})["prompt_eval_count"]);
  Json pictured = user;
  pictured["images"] = nullptr;
  Json thoughtless{{"role", "assistant"}, {"content", "b"}, {"thinking", ""}};
  ask("/api/chat", {{"messages", {pictured, called, result, user}}});
  ask("/api/chat", {{"messages", {user, {{"role", "user"}}, {{"role", "system"}, {"content", nullptr}}}}});
  EXPECT_EQ(ask("/api/chat", {{"messages", {user, thoughtless}}})["message"]["role"], "assistant") << "is continued";
  for (const Json& format : {Json(""), Json("json"), Json{{"const", 7}}}) {
    ask("/api/chat", {{"messages", {user}}, {"format", format}});
  }
  // As Ollama's own client sends it.
  const Json empty = Json::parse(R"({"suffix": "", "system": "", "template": "", "_debug_render_only": false})");
  EXPECT_EQ(ask("/api/generate", Json{{"prompt", ""}} | empty)["done_reason"], "load");
  EXPECT_EQ(ask("/api/generate", Json{{"prompt", "a"}} | empty)["done_reason"], "length");
  ask("/api/chat", {{"messages", {user}}, {"_debug_render_only", false}});
  const Json options{
      {"embedding_only", false}, {"num_gqa", 1}, {"num_predict", 1}, {"tool_choice", "auto"}, {"user", "u"}};
  const auto with_options = post_and_wait("/api/chat", {{"model", "m"}, {"messages", {user}}, {"options", options}});
  EXPECT_EQ(with_options->status(), 200) << with_options->body();
  EXPECT_EQ(ask("/api/generate", {{"prompt", ""}})["done_reason"], "load");
  EXPECT_EQ(ask("/api/generate", {{"prompt", ""}, {"raw", true}})["done_reason"], "load");
  const auto tokens = [&](const Json& body) { return ask("/api/generate", body)["prompt_eval_count"].get<int>(); };
  const int plain = tokens({{"prompt", "a"}});
  EXPECT_EQ(tokens({{"prompt", "a"}, {"system", ""}}), plain);
  EXPECT_LT(tokens({{"prompt", "a"}, {"raw", true}, {"system", ""}}), plain);
}

TEST_F(ApiTest, OllamasCallsMayHaveAType) {
  const Json call{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", Json::object()}}}};
  const Json messages{from_user,
                      {{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}},
                      {{"role", "tool"}, {"tool_name", "f"}, {"content", "1"}}};
  EXPECT_EQ(post_and_wait("/api/chat", {{"model", "minimind"}, {"messages", messages}})->status(), 200);
}

TEST_F(ApiTest, ARawPromptOfOllamaHasNoSystem) {
  const auto answer =
      post_and_wait("/api/generate", {{"model", "minimind"}, {"prompt", "a"}, {"raw", true}, {"system", "s"}});
  EXPECT_EQ(answer->json()["error"], "system is \"s\", expected nothing, because a raw prompt has it");
}

TEST_F(ApiTest, RejectsMessagesThatOllamaCannotMean) {
  const auto error_about = [&](const Json& messages) {
    const auto answer = post_and_wait("/api/chat", {{"model", "minimind"}, {"messages", messages}});
    EXPECT_EQ(answer->status(), 400) << answer->body();
    return answer->json()["error"].get<std::string>();
  };
  Json many{{"role", "user"}, {"content", "a"}};
  for (int i = 0; i < 100; ++i) many["f" + std::to_string(i)] = 1;
  EXPECT_NE(error_about(Json::array({many})).find("message 1 has 102 fields"), std::string::npos);
  EXPECT_NE(error_about(Json::array({1})).find("message 1 is "), std::string::npos);
  EXPECT_NE(error_about(Json::array({{{"role", "user"}, {"content", "a"}, {"images", {"aa"}}}})).find("text only"),
            std::string::npos);
  const Json user{{"role", "user"}, {"content", "a"}};
  for (const char* const calls : {"1", "[1]", R"([{"function": 1}])", "[{}]"}) {
    EXPECT_FALSE(
        error_about({user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::parse(calls)}}}).empty())
        << calls;
  }
  const Json call{{"function", {{"name", "f"}, {"arguments", Json::object()}}}};
  EXPECT_NE(error_about({user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}}}).find("expected its"),
            std::string::npos);
}

// Those of a character that no token has as a whole are bytes.
TEST_F(ApiTest, GivesThePiecesOfTokens) {
  const std::string content = "床\xF0\xA0\xAE\xB7 a<|im_end|>";
  const auto joined = [&](const Json& tokens) {
    std::string text;
    for (const Json& token : tokens) {
      if (token["piece"].is_string()) {
        text += token["piece"].get<std::string>();
      } else {
        for (const Json& byte : token["piece"]) text += static_cast<char>(byte.get<int>());
      }
    }
    return text;
  };
  const Json pieces = post_and_wait("/tokenize", {{"content", content}, {"with_pieces", true}})->json()["tokens"];
  EXPECT_EQ(joined(pieces), content);
  EXPECT_TRUE(std::ranges::any_of(pieces, [](const Json& token) { return token["piece"].is_array(); })) << pieces;
  const Json special = post_and_wait("/tokenize", {{"content", content}, {"with_pieces", true}, {"add_special", true}})
                           ->json()["tokens"];
  EXPECT_EQ(joined(special), content);
  EXPECT_EQ(special.back()["piece"], "<|im_end|>");
  EXPECT_EQ(post_and_wait("/tokenize", {{"content", ""}})->json()["tokens"], Json::array());
  EXPECT_EQ(post_and_wait("/detokenize", {{"tokens", Json::array()}})->json()["content"], "");
}

constexpr std::size_t one_demo = 10'000'000;  // bytes: room for the demo model once

// A server of copies of the demo model, which are written to the folder.
ModelShelf::Settings settings_of(const TemporaryFolder& folder, const std::vector<std::string>& files,
                                 std::size_t models_memory) {
  const std::string demo = MINIMIND_SOURCE_DIR "/weights/demo/";
  for (const std::string& name : files) std::filesystem::copy_file(demo + "model.pth", folder.path() + "/" + name);
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    if (std::filesystem::exists(demo + name)) std::filesystem::copy_file(demo + name, folder.path() + "/" + name);
  }
  ModelShelf::Settings of_folder = settings();
  of_folder.arguments.checkpoint.model = folder.path();
  of_folder.models_memory = models_memory;
  return of_folder;
}

std::shared_ptr<FakeAnswer> complete_with(Api& api, Json body) {
  body["prompt"] = "江";
  return post_to(api, "/v1/completions", body.dump());
}

TEST(ModelShelfTest, LoadsTheModelsOfAFolderAsTheyAreAskedFor) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  ASSERT_EQ(models.list().size(), 2u);
  EXPECT_EQ(models.list()[0].context, 0u) << "none is loaded";
  EXPECT_EQ(models.get("a")->model.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(models.get("b")->model.names(), std::vector<std::string>{"b"});
  std::size_t loaded = 0;
  for (const auto& model : models.list()) loaded += model.context > 0;
  EXPECT_EQ(loaded, 1u);
  EXPECT_EQ(models.get("b:latest")->model.names(), std::vector<std::string>{"b"});
  EXPECT_THROW(models.get("c"), RequestError);
  EXPECT_THROW(models.get("a:nothing"), RequestError);
  EXPECT_THROW(models.only(), RequestError);
  Api api(models, options());
  const auto answer = complete_with(api, {{"model", "a"}, {"max_tokens", 3}});
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->json()["model"], "a") << answer->body();
}

// A stream of model a, whose client is behind from its fifth piece on.
std::shared_ptr<FakeAnswer> unread_stream_of_a(Api& api, std::size_t max_tokens) {
  const auto unread = std::make_shared<FakeAnswer>();
  unread->fall_behind_at(5);
  const Json body{{"model", "a"}, {"prompt", "江"}, {"max_tokens", max_tokens}, {"stream", true}, {"ignore_eos", true}};
  post_to(api, "/v1/completions", body.dump(), unread);
  EXPECT_TRUE(unread->wait_for_pieces(5));
  return unread;
}

TEST(ModelShelfTest, AStreamThatIsNotReadKeepsNoOtherModelOut) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  Api api(models, options());
  const auto unread = unread_stream_of_a(api, 400);
  const auto other = complete_with(api, {{"model", "b"}, {"max_tokens", 3}});
  ASSERT_TRUE(other->wait());
  EXPECT_EQ(other->status(), 200) << other->body();
  EXPECT_TRUE(unread->wait());
}

// Clients' parsers fail without any of the strings.
TEST(ModelShelfTest, AModelThatIsNotLoadedHasAllDetailsForOllama) {
  const TemporaryFolder folder;
  ModelShelf shelf(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  Api api(shelf, options());
  const auto listed = get_from(api, "/api/tags");
  ASSERT_TRUE(listed->wait());
  const Json models = listed->json()["models"];
  ASSERT_EQ(models.size(), 2u) << listed->body();
  for (const Json& model : models) {
    EXPECT_EQ(model["details"], Json::parse(R"({"parent_model": "", "format": "", "family": "minimind",
        "families": ["minimind"], "parameter_size": "", "quantization_level": ""})"));
  }
}

TEST(ModelShelfTest, ASingleModelHasNoNameOfACheckpointNextToIt) {
  const TemporaryFolder folder;
  ModelShelf::Settings single = settings_of(folder, {"a.pth", "b.pth"}, one_demo);
  std::filesystem::create_directory(folder.path() + "/lora");
  std::ofstream(folder.path() + "/lora/style.pth") << "x";
  single.arguments.checkpoint.model = folder.path() + "/a.pth";
  single.arguments.run.quiet = false;
  std::vector<std::string> log;
  single.log = [&](const std::string& line) { log.push_back(line); };
  testing::internal::CaptureStderr();
  ModelShelf models(std::move(single));
  testing::internal::GetCapturedStderr();
  for (const char* const name : {"b", "b.pth", "out/b.pth", "b:latest", "a:b", "a:style", "lora"}) {
    EXPECT_THROW(models.get(name), RequestError) << name;
  }
  EXPECT_TRUE(log.empty());
  for (const char* const name : {"a", "a.pth", "a:latest", "minimind"}) models.get(name);
  EXPECT_TRUE(log.empty()) << "these are its names";
  for (const char* const name : {"c", "c", "out/a.pth", "c"}) models.get(name);
  ASSERT_EQ(log.size(), 2u) << "each once";
  EXPECT_EQ(log[0], "a request names the model 'c', and gets the only one, 'a'");
  for (int i = 0; i < 200; ++i) models.get("name " + std::to_string(i));
  EXPECT_EQ(log.size(), 101u);
  EXPECT_EQ(log.back(), "requests name over 100 other models; further names are not logged");
}

std::string greedy_text(Api& api, const std::string& model) {
  const auto answer = complete_with(api, {{"model", model}, {"max_tokens", 24}, {"temperature", 0}});
  EXPECT_TRUE(answer->wait());
  return answer->status() == 200 ? answer->json()["choices"][0]["text"].get<std::string>() : answer->body();
}

TEST(ModelShelfTest, UnloadsAModelThatAClientDoesNotKeepAlive) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  Api api(models, options());
  const auto loaded = [&] {
    return std::ranges::count_if(models.list(), [](const auto& model) { return model.context > 0; });
  };
  const auto unload = [&](const std::string& path, const Json& body) {
    const auto answer = post_to(api, path, body.dump());
    EXPECT_TRUE(answer->wait());
    return answer->status() == 200 ? answer->json()["done_reason"].get<std::string>()
                                   : std::to_string(answer->status());
  };
  const std::string text = greedy_text(api, "a");
  const std::shared_ptr<ServedModel> running = models.get("b");
  EXPECT_EQ(loaded(), 2);
  EXPECT_EQ(unload("/api/generate", {{"model", "a"}, {"keep_alive", 0}}), "unload");
  EXPECT_EQ(loaded(), 1);
  EXPECT_EQ(unload("/api/chat", {{"model", "b:latest"}, {"keep_alive", "0s"}, {"messages", Json::array()}}), "unload");
  EXPECT_EQ(running->model.names().front(), "b") << "who holds it may go on";
  EXPECT_EQ(unload("/api/generate", {{"model", "c"}, {"keep_alive", 0}}), "404");
  EXPECT_EQ(greedy_text(api, "a"), text);
  EXPECT_EQ(
      unload(
          "/api/generate",
          {{"model", "a"}, {"keep_alive", 0}, {"prompt", "a"}, {"stream", false}, {"options", {{"num_predict", 1}}}}),
      "length")
      << "a text is generated";
}

TEST(ModelShelfTest, AModelThatWasUnloadedLeavesTheMemoryWhenItsTextsHaveEnded) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  Api api(models, options());
  const auto running = unread_stream_of_a(api, 200);
  const std::weak_ptr<ServedModel> model = models.get("a");
  models.unload("a");
  EXPECT_FALSE(model.expired());
  running->catch_up();
  ASSERT_TRUE(running->wait());
  for (int i = 0; i < 1000 && !model.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(model.expired()) << "no other request comes";
}

TEST(ModelShelfTest, AModelThatWasReplacedLeavesTheMemory) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  const std::weak_ptr<ServedModel> old = models.get("a");
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/a.pth",
                             std::filesystem::copy_options::overwrite_existing);
  const std::shared_ptr<ServedModel> now = models.get("a");
  EXPECT_TRUE(old.expired());
}

TEST(ModelShelfTest, OllamasClientsUnloadByEveryFormOfZero) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  Api api(models, options());
  for (const Json& zero : {Json(0), Json("0"), Json("0s"), Json("0m")}) {
    models.get("a");
    const Json body{{"model", "a"}, {"keep_alive", zero}, {"prompt", ""}};
    const auto answer = post_to(api, "/api/generate", body.dump());
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->json()["done_reason"], "unload") << zero;
    EXPECT_EQ(models.list()[0].context + models.list()[1].context, 0u) << zero;
  }
}

TEST_F(ApiTest, TheOnlyModelStaysLoaded) {
  const auto answer = post_and_wait("/api/generate", {{"model", "minimind"}, {"keep_alive", 0}});
  EXPECT_EQ(answer->status(), 400);
  EXPECT_NE(answer->body().find("the server has one model"), std::string::npos) << answer->body();
}

TEST(ModelShelfTest, SeesWhatATrainerSavesAfterTheStart) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  EXPECT_EQ(models.list()[0].name, "a");
  EXPECT_GT(models.list()[0].context, 0u) << "the only one is loaded at once";
  EXPECT_EQ(models.only()->model.names(), std::vector<std::string>{"a"});
  for (const char* const name : {"b", "a:latest", "b:latest"}) {
    EXPECT_EQ(models.get(name)->model.names(), std::vector<std::string>{"a"}) << "the only one has any name";
  }
  std::filesystem::last_write_time(folder.path() + "/a.pth",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/b.pth");
  EXPECT_EQ(models.get("")->model.names(), std::vector<std::string>{"b"}) << "the newest";
  EXPECT_EQ(models.list().size(), 2u);
  EXPECT_THROW(models.get("c"), RequestError) << "there are several now";
  EXPECT_EQ(models.only()->model.names(), std::vector<std::string>{"a"}) << "a trainer's rollouts stay with theirs";
  std::filesystem::remove(folder.path() + "/b.pth");
  EXPECT_EQ(models.get("")->model.names(), std::vector<std::string>{"a"});
}

// A trainer whose rollouts give the model new weights may save to the same folder, under any name.
TEST(ModelShelfTest, WeightsThatWereGivenStayAndAreNotDropped) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, one_demo));
  const ServedModel* const served = models.only().get();
  models.keep(*served);
  const std::string demo = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  std::filesystem::copy_file(demo, folder.path() + "/a.pth", std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(models.get("a").get(), served);
  EXPECT_EQ(models.only().get(), served);
  std::filesystem::copy_file(demo, folder.path() + "/b.pth");
  EXPECT_THROW(models.get("b"), RequestError) << "there is memory for one";
  EXPECT_EQ(models.only().get(), served);
}

TEST(ModelShelfTest, AModelThatWasOnlyReadIsThatOfItsFile) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  const std::shared_ptr<ServedModel> before = models.only();
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/a.pth",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(models.only(), before);
  EXPECT_THROW(models.keep(*before), RequestError) << "nobody would get these weights";
  models.unload("a");
  EXPECT_EQ(models.only()->model.names(), std::vector<std::string>{"a"});
}

TEST(ModelShelfTest, TakesACheckpointThatIsWrittenAnewOnceItIsWhole) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  Api api(models, options());
  const std::string path = folder.path() + "/a.pth", old_text = greedy_text(api, "a");
  std::string bytes = read_whole_file(path);
  // The first layer's norms change places: other weights in a whole file.
  for (std::size_t at = bytes.find("data/7"); at != std::string::npos; at = bytes.find("data/7", at))
    bytes[at + 5] = '?';
  for (std::size_t at = bytes.find("data/8"); at != std::string::npos; at = bytes.find("data/8", at))
    bytes[at + 5] = '7';
  for (std::size_t at = bytes.find("data/?"); at != std::string::npos; at = bytes.find("data/?", at))
    bytes[at + 5] = '8';
  const TemporaryFolder other;
  ModelShelf::Settings of_new = settings_of(other, {}, one_demo);
  std::ofstream(other.path() + "/a.pth", std::ios::binary) << bytes;
  ModelShelf new_models(of_new);
  Api new_api(new_models, options());
  const std::string new_text = greedy_text(new_api, "a");
  ASSERT_NE(new_text, old_text);

  const Json longer{{"model", "a"}, {"max_tokens", 200}, {"ignore_eos", true}, {"temperature", 0}};
  const auto alone = complete_with(api, longer);
  ASSERT_TRUE(alone->wait());
  Json streamed = longer;
  streamed["stream"] = true;
  const auto running = complete_with(api, streamed);
  ASSERT_TRUE(running->wait_for_pieces(2));
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 3);
  EXPECT_EQ(greedy_text(api, "a"), old_text) << "while it is being written";
  EXPECT_EQ(models.list().size(), 2u);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(greedy_text(api, "a"), new_text);
  ASSERT_TRUE(running->wait());
  std::string text;
  for (const Json& event : running->events()) {
    if (!event["choices"].empty()) text += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, alone->json()["choices"][0]["text"].get<std::string>()) << "ends as it began";
}

TEST(ModelShelfTest, WaitsForTextsThatUseTheMemory) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  Api api(models, options());
  const Json longer{{"model", "a"}, {"max_tokens", 200}, {"ignore_eos", true}, {"stream", true}};
  const auto first = complete_with(api, longer);
  ASSERT_TRUE(first->wait_for_pieces(2));
  const auto second = complete_with(api, {{"model", "b"}, {"max_tokens", 2}});
  ASSERT_TRUE(second->wait());
  EXPECT_EQ(second->status(), 200) << second->body();
  EXPECT_TRUE(first->has_ended());
  EXPECT_EQ(first->events().back()["choices"][0]["finish_reason"], "length");
}

TEST(ModelShelfTest, KeepsAModelThatIsHeld) {
  const TemporaryFolder folder;
  ModelShelf::Settings of_folder = settings_of(folder, {"a.pth", "b.pth"}, one_demo);
  of_folder.longest_wait_for_room = std::chrono::milliseconds(50);
  ModelShelf models(of_folder);
  std::shared_ptr<ServedModel> held = models.get("a");
  EXPECT_THROW(models.get("b"), RequestError) << "waits for the memory of a, which is not given up";
  EXPECT_EQ(models.get("a"), held);
  held.reset();
  EXPECT_EQ(models.get("b")->model.names(), std::vector<std::string>{"b"});
}

TEST(ModelShelfTest, BriefWorkLoadsNoModel) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  const std::shared_ptr<ServedModel> a = models.get("a");
  const BriefWork brief;
  EXPECT_EQ(models.get("a"), a);
  EXPECT_THROW(models.get("b"), LongWork);
}

TEST(ModelShelfTest, RejectsAModelThatIsLargerThanItsMemory) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, 1'000'000));
  Api api(models, options());
  const auto answer = complete_with(api, {{"model", "a"}});
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 400) << answer->body();
  const auto message = answer->json()["error"]["message"].get<std::string>();
  EXPECT_NE(message.find("8.7 MB, expected at most the 1.0 MB of the server's --models-memory"), std::string::npos)
      << message;
}

// Sets the language of notes, and that of before at the end.
class InLanguage {
 public:
  explicit InLanguage(Language wanted) : before_(language()) { set_language(wanted); }
  InLanguage(const InLanguage&) = delete;
  InLanguage& operator=(const InLanguage&) = delete;
  ~InLanguage() { set_language(before_); }

 private:
  const Language before_;
};

TEST(ModelShelfTest, NamesFilesThatCannotBeRead) {
  const TemporaryFolder folder;
  ModelShelf::Settings of_folder = settings_of(folder, {"a.pth", "b.pth", "cut.pth"}, one_demo);
  std::filesystem::resize_file(folder.path() + "/cut.pth", 500'000);
  std::filesystem::create_directory(folder.path() + "/lora");
  std::ofstream(folder.path() + "/lora/style.pth") << "no LoRA";
  of_folder.arguments.run.quiet = false;
  const auto notes = [&](Language language) {
    const InLanguage in(language);
    testing::internal::CaptureStderr();
    const ModelShelf models(of_folder);
    return testing::internal::GetCapturedStderr();
  };
  const std::string english = notes(Language::english), chinese = notes(Language::chinese);
  for (const char* const expected :
       {"/cut.pth: is truncated: ", "/lora/style.pth: ", "; replace the file or move it out of the folder\n"}) {
    EXPECT_NE(english.find(expected), std::string::npos) << expected << ": " << english;
  }
  EXPECT_NE(chinese.find("/cut.pth: is truncated: "), std::string::npos) << chinese;
  EXPECT_NE(chinese.find("；请替换该文件，或将其移出文件夹\n"), std::string::npos) << chinese;

  of_folder.arguments.run.quiet = true;
  std::string log;
  of_folder.log = [&](const std::string& line) { log += line; };
  ModelShelf models(of_folder);
  EXPECT_EQ(models.list().size(), 2u);
  Api api(models, options());
  const auto answer = complete_with(api, {{"model", "cut"}});
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 400);
  EXPECT_NE(answer->body().find("which cannot be read; the server's log has the reason"), std::string::npos);
  EXPECT_EQ(answer->body().find("truncated"), std::string::npos) << answer->body();
  EXPECT_NE(log.find("/cut.pth: is truncated: "), std::string::npos) << log;
}

TEST(ModelShelfTest, DropsNoModelForOneThatIsTooLarge) {
  const TemporaryFolder folder;
  const std::string golden = MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth";
  std::filesystem::copy_file(golden, folder.path() + "/small.pth");
  ModelShelf::Settings of_folder = settings_of(folder, {"large.pth"}, 1'000'000);
  of_folder.arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  of_folder.chat_template = folder.path() + "/thinking.jinja";
  std::ofstream(of_folder.chat_template) << "{{ messages[0].content }}{{ open_thinking }}";
  ModelShelf models(of_folder);
  models.get("small");
  EXPECT_THROW(models.get("large"), RequestError);
  for (const ModelShelf::Listed& model : models.list()) {
    EXPECT_EQ(model.context > 0, model.name == "small");
    EXPECT_EQ(model.minds_thinking, model.name == "small");
  }
}

// Of the model a, which has memory for one: a text that has it, and a request for b that waits for it, after which
// another one for a waits, too.
struct WaitingForMemory {
  explicit WaitingForMemory(Api& api)
      : first(complete_with(api, {{"model", "a"}, {"max_tokens", 4000}, {"ignore_eos", true}, {"stream", true}})) {
    EXPECT_TRUE(first->wait_for_pieces(2));
    waiting = complete_with(api, {{"model", "b"}});
    for (std::size_t steps = 20; steps < 2000 && (!next || next->has_ended()); steps += 20) {
      next = complete_with(api, {{"model", "a"}, {"max_tokens", 1}});
      EXPECT_TRUE(first->wait_for_pieces(steps)) << "of which the next one needs one";
    }
    EXPECT_FALSE(next->has_ended()) << "later requests do not keep the memory from it";
  }
  std::shared_ptr<FakeAnswer> first, waiting, next;
};

TEST(ModelShelfTest, ARequestThatWaitsForMemoryEndsWithItsClient) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  Api api(models, options());
  const WaitingForMemory requests(api);
  requests.waiting->disconnect();
  ASSERT_TRUE(requests.next->wait());
  EXPECT_EQ(requests.next->status(), 200) << requests.next->body();
  EXPECT_FALSE(requests.first->has_ended()) << "which has the memory";
  EXPECT_FALSE(requests.waiting->has_ended()) << "an answer that nobody gets";
  requests.first->disconnect();
}

TEST(ModelShelfTest, ARequestThatWaitsForMemoryIsToldThatTheServerShutsDown) {
  const TemporaryFolder folder;
  ModelShelf::Settings of_folder = settings_of(folder, {"a.pth", "b.pth"}, one_demo);
  of_folder.longest_wait_for_room = std::chrono::minutes(10);
  ModelShelf models(of_folder);
  std::optional<Api> api(std::in_place, models, options());
  const WaitingForMemory requests(*api);
  api->drain();
  for (const auto& answer : {requests.waiting, requests.next}) {
    ASSERT_TRUE(answer->wait());
    EXPECT_EQ(answer->status(), 503) << answer->body();
  }
  const auto start = std::chrono::steady_clock::now();
  api.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1)) << "it waits no longer";
  requests.first->disconnect();
}

TEST(ModelShelfTest, ARequestWaitsForMemoryNoLongerThanOthersMayWaitForIt) {
  const TemporaryFolder folder;
  ModelShelf::Settings of_folder = settings_of(folder, {"a.pth", "b.pth"}, one_demo);
  of_folder.longest_wait_for_room = std::chrono::milliseconds(300 * slowness);
  ModelShelf models(of_folder);
  Api api(models, options());
  const WaitingForMemory requests(api);
  ASSERT_TRUE(requests.waiting->wait());
  EXPECT_EQ(requests.waiting->status(), 429) << requests.waiting->body();
  EXPECT_NE(requests.waiting->body().find("model is 'b', for which there is no room now"), std::string::npos)
      << requests.waiting->body();
  ASSERT_TRUE(requests.next->wait());
  EXPECT_EQ(requests.next->status(), 200) << requests.next->body();
  const auto start = std::chrono::steady_clock::now();
  const auto again = complete_with(api, {{"model", "b"}});
  ASSERT_TRUE(again->wait());
  EXPECT_EQ(again->status(), 429) << again->body();
  EXPECT_LT(std::chrono::steady_clock::now() - start, of_folder.longest_wait_for_room / 2) << "others have waited";
  EXPECT_FALSE(requests.first->has_ended()) << "which has the memory";
  requests.first->disconnect();
}

TEST(ModelShelfTest, AModelThatIsWrittenAnewWithoutMemoryForBothStaysUntilItsTextsEnd) {
  const TemporaryFolder folder;
  ModelShelf::Settings of_folder = settings_of(folder, {"a.pth"}, one_demo);
  of_folder.longest_wait_for_room = std::chrono::milliseconds(50);
  ModelShelf models(of_folder);
  std::shared_ptr<ServedModel> held = models.get("a");
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/a.pth",
                             std::filesystem::copy_options::overwrite_existing);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(models.get("a"), held);
  const std::weak_ptr<ServedModel> before = held;
  held.reset();
  models.get("a");
  EXPECT_TRUE(before.expired());
}

const std::string golden_lora = MINIMIND_SOURCE_DIR "/tests/golden/v3-lora/";

// Of this folder, which gets base.pth and an empty folder of LoRAs.
ModelShelf::Settings lora_settings(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder.path() + "/lora");
  std::filesystem::copy_file(golden_lora + "model.pth", folder.path() + "/base.pth");
  ModelShelf::Settings of_folder = settings();
  of_folder.arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  of_folder.arguments.checkpoint.model = folder.path();
  return of_folder;
}

TEST(ModelShelfTest, MergesALoraOfTheFolder) {
  const TemporaryFolder folder;
  const ModelShelf::Settings of_folder = lora_settings(folder);
  std::filesystem::copy_file(golden_lora + "lora.pth", folder.path() + "/lora/style.pth");
  GenerationArguments merged = of_folder.arguments;
  merged.checkpoint.model = golden_lora + "model.pth";
  merged.checkpoint.loras.push_back(golden_lora + "lora.pth");
  ModelShelf models(of_folder);
  EXPECT_EQ(models.list().at(0).loras, std::vector<std::string>{"style"});
  const auto logits = [](const TextModel& model) {
    Forward forward = model.llm().forward(8, 16);
    Context context = model.llm().context(16);
    const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5};
    std::vector<float> values(model.llm().config.vocab_size);
    const Piece piece{&context, tokens, 1};
    forward.run(std::span(&piece, 1), {values.data(), 1, values.size()});
    return values;
  };
  const std::vector<float> with_lora = logits(models.get("base:style")->model);
  EXPECT_EQ(with_lora, logits(TextModel(merged, "")));
  EXPECT_NE(with_lora, logits(models.get("base")->model));
}

// The tokens around a call are those of the tokenizer.
TEST(ModelShelfTest, ATokenizerOfAnotherModelIsNoFaultOfTheServer) {
  ModelShelf::Settings other = settings();
  other.arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth";
  other.arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  ModelShelf models(other);
  Api api(models, options());
  const Json function{{"name", "f"}, {"parameters", {{"type", "object"}}}};
  const Json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                  {"tools", {{{"type", "function"}, {"function", function}}}},
                  {"tool_choice", "required"}};
  const auto answer = post_to(api, "/v1/chat/completions", body.dump());
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 400) << answer->body();
}

TEST(ModelShelfTest, ASingleModelMayBeAFolderOrInTheCurrentOne) {
  const TemporaryFolder folder;
  for (const char* const name : {"one", "two"}) {
    std::filesystem::copy(MINIMIND_SOURCE_DIR "/tests/golden/hf-llama", folder.path() + "/" + name);
  }
  ModelShelf::Settings single = settings();
  single.arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  single.arguments.run.quiet = false;  // without a log: nobody reads of other names
  for (const std::string& path : {folder.path() + "/one", folder.path() + "/one/"}) {
    single.arguments.checkpoint.model = path;
    testing::internal::CaptureStderr();
    ModelShelf models(single);
    testing::internal::GetCapturedStderr();
    EXPECT_THROW(models.get("two"), RequestError);
    for (const char* const name : {"one", "three", "x/one"}) EXPECT_NO_THROW(models.get(name)) << path << name;
  }
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/a.pth");
  const std::filesystem::path before = std::filesystem::current_path(),
                              demo = std::filesystem::absolute(MINIMIND_SOURCE_DIR "/weights/demo");
  std::filesystem::current_path(folder.path());
  ModelShelf::Settings local = settings();
  local.arguments.checkpoint.model = "a.pth";
  local.arguments.tokenizer = demo.string();
  {
    ModelShelf models(local);
    EXPECT_THROW(models.get("two"), RequestError);
    EXPECT_NO_THROW(models.get("a"));
  }
  std::filesystem::current_path(before);
}

TEST(ModelShelfTest, KnowsLorasByTheirNames) {
  const TemporaryFolder folder;
  const ModelShelf::Settings of_folder = lora_settings(folder);
  std::filesystem::copy_file(golden_lora + "model.pth", folder.path() + "/lora/no_lora.pth");
  std::filesystem::copy_file(golden_lora + "lora.pth", folder.path() + "/style.pth");
  std::filesystem::copy_file(golden_lora + "lora.pth", folder.path() + "/lora/latest.pth");
  ModelShelf models(of_folder);
  ASSERT_EQ(models.list().size(), 1u);
  EXPECT_EQ(models.list()[0].loras, (std::vector<std::string>{"style", "latest"}));
  EXPECT_EQ(models.get("base:latest")->model.names().front(), "base:latest") << "the LoRA, not the tag";
  EXPECT_EQ(models.get("base:style")->model.names().front(), "base:style");
  for (const char* const name : {"style", "base:no_lora", "base:nothing"}) {
    EXPECT_THROW(models.get(name), RequestError) << name << " would mislead";
  }
  EXPECT_EQ(models.get("other")->model.names().front(), "base");
}

TEST(ModelShelfTest, FilesThatDifferOnlyInTheirSuffixHaveItInTheirNames) {
  const TemporaryFolder folder;
  const ModelShelf::Settings of_folder = settings_of(folder, {"a.pth", "a.bin"}, one_demo);
  std::filesystem::last_write_time(folder.path() + "/a.bin",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  ModelShelf models(of_folder);
  ASSERT_EQ(models.list().size(), 2u);
  EXPECT_EQ(models.list()[0].name, "a");
  EXPECT_EQ(models.list()[1].name, "a.bin");
}

TEST(ModelShelfTest, SaysThatTheFolderHasNoModelLeft) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  for (const char* const name : {"/a.pth", "/b.pth"}) std::filesystem::remove(folder.path() + name);
  try {
    models.get("a");
    ADD_FAILURE() << "there is none";
  } catch (const RequestError& error) {
    EXPECT_NE(std::string(error.what()).find("which has none"), std::string::npos) << error.what();
  }
}

TEST(ModelShelfTest, DropsTheModelThatWasNotUsedForTheLongestTime) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth", "c.pth"}, 2 * one_demo));
  const auto loaded = [&] {
    std::set<std::string> names;
    for (const auto& model : models.list()) {
      if (model.context > 0) names.insert(model.name);
    }
    return names;
  };
  for (const char* const name : {"a", "b", "a", "c"}) models.get(name);
  EXPECT_EQ(loaded(), (std::set<std::string>{"a", "c"}));
  for (const char* const name : {"a", "c", "b"}) models.get(name);
  EXPECT_EQ(loaded(), (std::set<std::string>{"b", "c"}));
}

TEST(ModelShelfTest, KeepsAModelWhoseNewFileIsNoModel) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  const std::shared_ptr<ServedModel> before = models.only();
  std::filesystem::resize_file(folder.path() + "/a.pth", 500'000);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(models.get("a"), before) << "it is not read again and again";
}

TEST(ModelShelfTest, AModelWithGivenWeightsIsNotUnloaded) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  const std::shared_ptr<ServedModel> served = models.only();
  models.keep(*served);
  EXPECT_THROW(models.unload("a"), RequestError);
  EXPECT_EQ(models.only(), served);
}

TEST(ModelShelfTest, AClientThatLeavesWhileTheFolderIsReadTakesNoModelAway) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder.path() + "/b.pth");
  {
    const std::atomic<bool> gone = true;
    const Cancellation by_client(gone);
    EXPECT_THROW(models.get("b"), Cancelled);
  }
  EXPECT_EQ(models.get("a")->model.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(models.get("b")->model.names(), std::vector<std::string>{"b"});
}

TEST(ModelShelfTest, AModelThatIsGoneKeepsNoWeights) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth"}, 3 * one_demo));
  const std::shared_ptr<ServedModel> served = models.only();
  models.unload("a");
  EXPECT_THROW(models.keep(*served), RequestError);
}

TEST(ModelShelfTest, AModelThatIsLoadedOnceTheServerShutsDownTakesNoTexts) {
  const TemporaryFolder folder;
  ModelShelf models(settings_of(folder, {"a.pth", "b.pth"}, one_demo));
  models.drain();
  Api api(models, options());
  const auto answer = complete_with(api, {{"model", "b"}});
  ASSERT_TRUE(answer->wait());
  EXPECT_EQ(answer->status(), 503) << "it is loaded, and takes no texts";
}

TEST(ModelShelfTest, TellsModelsThatAreLoadedFromOthers) {
  const TemporaryFolder folder;
  ModelShelf shelf(settings_of(folder, {"a.pth", "b.pth"}, 3 * one_demo));
  Api api(shelf, options());
  EXPECT_EQ(get_from(api, "/ready")->status(), 200) << "with none";
  std::filesystem::last_write_time(folder.path() + "/a.pth",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  shelf.get("a");
  const auto json_of = [](const std::shared_ptr<FakeAnswer>& answer) {
    EXPECT_TRUE(answer->wait());
    return answer->json();
  };
  const Json models = json_of(get_from(api, "/v1/models"))["data"];
  for (const Json& model : models) {
    const std::string file = folder.path() + "/" + model["id"].get<std::string>() + ".pth";
    struct stat status {};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(model["created"], status.st_mtime);
    for (const Json& facts : {model, model["minimind"]}) {
      EXPECT_EQ(facts.contains("max_model_len") || facts.contains("context_length"), model["id"] == "a") << model;
    }
  }
  const Json running = json_of(get_from(api, "/api/ps"))["models"];
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0]["name"], "a");
  const Json listed = json_of(get_from(api, "/api/tags"))["models"];
  const Json shown = json_of(post_to(api, "/api/show", R"({"model": "a"})"));
  EXPECT_EQ(shown["modified_at"], listed[1]["modified_at"]);
  EXPECT_NE(shown["modified_at"], listed[0]["modified_at"]);
}

TEST(OllamaModelsTest, CountsBillionsOfParameters) {
  const Json models =
      ollama_tags({{.name = "m", .created = 1, .loras = {}, .facts = {.parameters = 1'230'000'000}}}, 0);
  EXPECT_EQ(models["models"][0]["details"]["parameter_size"], "1.2B");
}

TEST(ModelShelfTest, ATokenizerAloneHasNoSpecialTokensAndNoTemplate) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json", folder.path() + "/tokenizer.json");
  ModelShelf::Settings alone = settings();
  alone.arguments.tokenizer = folder.path();
  ModelShelf models(alone);
  Api api(models, options());
  const auto info = get_from(api, "/tokenizer_info");
  ASSERT_TRUE(info->wait());
  for (const char* const name : {"bos_token", "eos_token", "pad_token", "chat_template"}) {
    EXPECT_TRUE(info->json().at(name).is_null()) << info->body();
  }
}

TEST(ModelShelfTest, AMixtureOfExpertsShowsThem) {
  ModelShelf::Settings other = settings();
  other.arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/tests/golden/v3-moe/model.pth";
  other.arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  ModelShelf models(other);
  Api api(models, options());
  const auto shown = post_to(api, "/api/show", R"({"model": "minimind"})");
  ASSERT_TRUE(shown->wait());
  const Json facts = shown->json()["model_info"];
  EXPECT_EQ(facts["minimind.expert_count"], models.only()->model.llm().config.num_experts) << facts;
  EXPECT_EQ(facts["minimind.expert_used_count"], models.only()->model.llm().config.num_experts_per_tok) << facts;
}

TEST_F(ApiTest, ReadyFailsWhileTheEngineMakesNoProgress) {
  ApiOptions impatient = options();
  impatient.stuck_after = std::chrono::milliseconds(20);
  Api own(models, impatient);
  HeldEngine held(engine);
  while (get_from(own, "/health")->status() == 200) std::this_thread::yield();
  const auto ready = get_from(own, "/ready");
  EXPECT_EQ(ready->status(), 503);
  EXPECT_EQ(ready->json()["status"], "stuck");
}

TEST_F(ApiTest, TokenizesPlainContentAsAChatHasIt) {
  const auto count = [&](bool plain) {
    const Json message{{"role", "user"}, {"content", "<|im_end|>"}};
    return post_and_wait("/tokenize", {{"messages", {message}}, {"plain_content", plain}})->json()["count"].get<int>();
  };
  EXPECT_GT(count(true), count(false));
}

TEST_F(ApiTest, ListsTheItemsOfALongInputNextToOthers) {
  const Json part{{"type", "input_text"}, {"text", "a"}, {"annotations", std::vector<int>(most_brief_bytes, 1)}};
  const Json input{{{"role", "user"}, {"content", {part}}}};
  const Json response = post_and_wait("/v1/responses", {{"input", input}, {"max_output_tokens", 1}})->json();
  const Json items = get("/v1/responses/" + response["id"].get<std::string>() + "/input_items")->json();
  EXPECT_EQ(items["data"][0]["content"], Json::array({part})) << response;
}

TEST_F(ApiTest, TokenizesAndBack) {
  const Json tokens = post_and_wait("/tokenize", {{"content", "床前明月光，"}})->json()["tokens"];
  EXPECT_EQ(tokens, Json(demo_model().tokenizer().encode("床前明月光，")));
  EXPECT_EQ(post_and_wait("/detokenize", {{"tokens", tokens}})->json()["content"], "床前明月光，");
  const Json prompt =
      post_and_wait("/apply-template", {{"messages", {{{"role", "user"}, {"content", "你好"}}}}})->json()["prompt"];
  EXPECT_NE(prompt.get<std::string>().find("你好"), std::string::npos);
}

TEST_F(ApiTest, TokenizesMessagesAsVllmDoes) {
  const Json ended{from_user, {{"role", "assistant"}, {"content", "好"}}};
  const Json without{{"add_generation_prompt", false}};
  for (const Json& body :
       {Json{{"messages", {from_user}}}, Json{{"messages", {from_user}}} | without, Json{{"messages", ended}} | without,
        Json{{"messages", ended}, {"continue_final_message", true}}, Json{{"messages", ended}}}) {
    const auto rendered = post_and_wait("/apply-template", body);
    ASSERT_EQ(rendered->status(), 200) << rendered->body();
    const auto ids = post_and_wait("/tokenize", body);
    ASSERT_EQ(ids->status(), 200) << ids->body();
    const Json of_prompt = post_and_wait("/tokenize", {{"prompt", rendered->json()["prompt"]}})->json();
    EXPECT_EQ(ids->json(), of_prompt) << body;
  }
  const auto count = [&](const Json& body) { return post_and_wait("/tokenize", body)->json()["count"].get<int>(); };
  const Json asked{{"messages", {from_user}}};
  EXPECT_LT(count(asked | without), count(asked));
  EXPECT_EQ(count(asked), chat(asked)->json()["usage"]["prompt_tokens"]);
  EXPECT_TRUE(post_and_wait("/tokenize", asked | Json{{"with_pieces", true}})->json()["tokens"][0].contains("piece"));
  EXPECT_EQ(post_and_wait("/tokenize", asked | Json{{"prompt", "a"}})->json()["error"]["param"], "prompt");
  EXPECT_EQ(chat(asked | without)->status(), 400) << "what is answered has the start of an answer";
}

TEST_F(ApiTest, TokenizesControlTokensIfTheyAreParsed) {
  const auto tokenized = [&](const Json& more) {
    return post_and_wait("/tokenize", Json{{"content", "a<|im_end|>"}} | more)->json();
  };
  const Json parsed = tokenized({{"parse_special", true}});
  EXPECT_EQ(parsed, tokenized(Json::object()));
  for (const bool adds : {false, true}) {
    const Json plain = tokenized({{"parse_special", false}, {"add_special", adds}});
    EXPECT_GT(plain["count"].get<int>(), parsed["count"].get<int>()) << plain;
    EXPECT_EQ(post_and_wait("/detokenize", {{"tokens", plain["tokens"]}})->json()["content"], "a<|im_end|>");
  }
}

TEST_F(ApiTest, ListsTheModelAndItsHealth) {
  const Json list = get("/v1/models")->json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "minimind-poet");
  EXPECT_EQ(list["data"][0]["minimind"]["thinking"], false);
  EXPECT_EQ(list["data"][0]["type"], "base") << "without which Mistral's client knows no model";
  EXPECT_EQ(list["data"][0]["capabilities"], Json({{"completion_chat", true}, {"function_calling", false}}));
  EXPECT_EQ(list["data"][0]["max_context_length"], list["data"][0]["max_model_len"]);
  EXPECT_EQ(list["data"][0]["context_window"], list["data"][0]["max_model_len"]);
  EXPECT_EQ(get("/v1/models/minimind-poet")->json()["object"], "model");
  EXPECT_EQ(get("/v1/models/minimind-poet:latest")->json()["id"], "minimind-poet");
  EXPECT_EQ(get("/v1/models/other")->status(), 404);
  EXPECT_EQ(get("/nowhere")->status(), 404);
  EXPECT_EQ(get("/v1/completions")->status(), 405);
  EXPECT_EQ(get("/v1/completions")->headers(), (HttpHeaders{{"Allow", "POST, OPTIONS"}}));
  EXPECT_EQ(get("/health")->json()["status"], "ok");
}

TEST_F(ApiTest, NamesTheMethodsOfEveryPath) {
  const auto ask = [&](const std::string& method, const std::string& path) {
    auto answer = std::make_shared<FakeAnswer>();
    api.handle({.method = method, .path = path, .query = "", .headers = {}, .body = ""}, answer);
    EXPECT_TRUE(answer->wait());
    const HttpHeaders& headers = answer->headers();
    return std::to_string(answer->status()) + ' ' + (headers.empty() ? "" : headers.front().second);
  };
  for (const char* const path : {"/page.js", "/v1/models", "/v1/models/minimind-poet", "/health"}) {
    EXPECT_EQ(ask("OPTIONS", path), "204 GET, HEAD, OPTIONS") << path;
    EXPECT_EQ(ask("PUT", path), "405 GET, HEAD, OPTIONS") << path;
  }
  EXPECT_EQ(ask("OPTIONS", "/"), "204 GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask("PUT", "/"), "405 GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "/v1/chat/completions"), "204 POST, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "*"), "204 GET, HEAD, POST, DELETE, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "/nowhere"), "404 ");
}

TEST_F(ApiTest, TakesTheNamesThatMiniMindsOwnClientsSend) {
  for (const char* const name : {"minimind", "minimind-local:latest", "jingyaogong/minimind-3:latest"}) {
    EXPECT_EQ(complete({{"model", name}, {"max_tokens", 1}})->status(), 200) << name;
  }
}

TEST_F(ApiTest, ASingleModelTakesEveryNameAndSaysItsOwn) {
  for (const char* const name : {"model-identifier", "gpt-4", "openai/gpt-4:latest", "a/", "..", "\xE6\xB1\x9F"}) {
    const auto answer = complete({{"model", name}, {"max_tokens", 1}});
    EXPECT_EQ(answer->status(), 200) << answer->body();
    EXPECT_EQ(answer->json()["model"], "minimind-poet");
    EXPECT_EQ(post_and_wait("/tokenize", {{"content", "a"}, {"model", name}})->status(), 200);
    const Json line = post_and_wait("/api/generate", {{"model", name}, {"prompt", ""}})->json();
    EXPECT_EQ(line["model"], "minimind-poet") << line;
    EXPECT_EQ(post_and_wait("/api/show", {{"model", name}})->status(), 200);
    EXPECT_EQ(get(std::string("/v1/models/") + name)->status(), 404);
  }
  EXPECT_EQ(complete({{"model", "minimind"}, {"max_tokens", 1}})->json()["model"], "minimind");
  EXPECT_EQ(complete({{"model", ""}, {"max_tokens", 1}})->json()["model"], "minimind-poet");
}

TEST_F(ApiTest, CountsForPrometheus) {
  complete({{"max_tokens", 3}});
  EXPECT_TRUE(engine.wait_until_idle(std::chrono::seconds(5)));
  const std::string text = get("/metrics")->body();
  for (const char* const line :
       {"minimind_requests_total{route=\"/v1/completions\",status=\"200\"} 1\n", "minimind_generated_tokens_total 3\n",
        "minimind_texts_running 0\n", "minimind_first_token_seconds_count 1\n", "minimind_texts_total 1\n",
        "minimind_token_gap_seconds_count 2\n", "vllm:num_requests_running{model_name=\"minimind-poet\"} 0\n",
        "vllm:generation_tokens_total{model_name=\"minimind-poet\"} 3\n",
        "vllm:time_to_first_token_seconds_count{model_name=\"minimind-poet\"} 1\n",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"minimind-poet\",le=\"+Inf\"} 1\n",
        "vllm:inter_token_latency_seconds_count{model_name=\"minimind-poet\"} 2\n",
        "vllm:time_per_output_token_seconds_count{model_name=\"minimind-poet\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace minimind
