#include "tools/serve/inside.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/support/fake_answer.h"
#include "tools/openai/request_error.h"
#include "tools/serve/api.h"

namespace minimind {
namespace {

GenerationArguments arguments_of(const std::string& checkpoint, const std::string& tokenizer) {
  GenerationArguments arguments;
  arguments.checkpoint.model = MINIMIND_SOURCE_DIR + checkpoint;
  if (!tokenizer.empty()) arguments.tokenizer = MINIMIND_SOURCE_DIR + tokenizer;
  arguments.run.quiet = true;
  arguments.run.threads = 1;
  return arguments;
}

const TextModel& poet() {
  static const TextModel model(arguments_of("/weights/demo/model.pth", ""), "");
  return model;
}

const TextModel& mixture() {
  static const TextModel model(arguments_of("/tests/golden/v3-moe/model.pth", "/tests/golden_texts/tokenizer.json"),
                               "");
  return model;
}

ChatJson inside(const TextModel& model, const ChatJson& body) {
  return inside_json(model, *model.llm().model, body, RequestDefaults());
}

TEST(Inside, WeightsOfEachHeadSumTo1) {
  for (const TextModel* const model : {&poet(), &mixture()}) {
    const ChatJson json = inside(*model, {{"prompt", "the moon in the river"}});
    const Config& config = model->llm().config;
    ASSERT_EQ(json["attention"].size(), config.num_hidden_layers);
    for (const ChatJson& layer : json["attention"]) {
      ASSERT_EQ(layer.size(), config.num_attention_heads);
      for (const ChatJson& head : layer) {
        ASSERT_EQ(head.size(), json["tokens"].size());
        for (std::size_t token = 0; token < head.size(); ++token) {
          ASSERT_EQ(head[token].size(), token + 1);
          double sum = 0;
          for (const ChatJson& weight : head[token]) sum += weight.get<double>();
          EXPECT_NEAR(sum, 1, 1e-4);
        }
      }
    }
  }
}

// Embedding, layers and rest are the logit of the token that follows.
TEST(Inside, SharesSumToTheLogit) {
  for (const TextModel* const model : {&poet(), &mixture()}) {
    const ChatJson json =
        inside(*model, ChatJson::parse(R"({"prompt": "the moon in the river", "positions": [0, 3]})"));
    ASSERT_EQ(json["positions"].size(), 2u);
    for (const ChatJson& position : json["positions"]) {
      double sum = position["embedding"]["logit"].get<double>() + position["rest"].get<double>();
      for (const ChatJson& layer : position["layers"]) {
        sum += layer["attention"]["logit"].get<double>() + layer["feed_forward"]["logit"].get<double>();
      }
      EXPECT_NEAR(sum, position["target"]["logit"].get<double>(), 1e-9);
      const std::size_t next = position["position"].get<std::size_t>() + 1;
      EXPECT_EQ(position["target"]["id"], json["tokens"][next]["id"]);
      EXPECT_NEAR(position["target"]["probability"].get<double>(), json["tokens"][next]["probability"].get<double>(),
                  1e-9);
    }
  }
}

TEST(Inside, TheLastLensIsTheFirstCandidate) {
  const ChatJson json = inside(poet(), {{"prompt", "床前明月光，"}});
  const ChatJson& position = json["positions"][0];
  EXPECT_EQ(position["position"], json["tokens"].size() - 1);
  EXPECT_EQ(position["layers"].back()["lens"]["id"], position["candidates"][0]["id"]);
  EXPECT_EQ(position["target"]["id"], position["candidates"][0]["id"]);
  EXPECT_TRUE(json["tokens"][0]["probability"].is_null());
  EXPECT_EQ(position["layers"][0]["neurons"].size(), 4u);
  EXPECT_EQ(position["layers"][0]["neurons"][0]["raises"].size(), 3u);
  EXPECT_FALSE(position["layers"][0].contains("router"));
}

TEST(Inside, CandidatesHaveTheirProbabilityAfterSampling) {
  const auto candidates = [](ChatJson body) {
    body.update({{"prompt", "床前明月光，"}, {"candidates", 5}});
    return inside(poet(), body)["positions"][0];
  };
  const ChatJson plain = candidates({{"temperature", 1}, {"top_k", 0}, {"top_p", 1}});
  for (const ChatJson& each : plain["candidates"]) {
    EXPECT_NEAR(each["sampled"].get<double>(), each["probability"].get<double>(), 1e-9);
  }
  const ChatJson two = candidates({{"temperature", 0.5}, {"top_k", 2}, {"top_p", 1}});
  EXPECT_EQ(two["kept"], 2);
  EXPECT_NEAR(two["candidates"][0]["sampled"].get<double>() + two["candidates"][1]["sampled"].get<double>(), 1, 1e-9);
  EXPECT_EQ(two["candidates"][2]["sampled"], 0);
  EXPECT_EQ(two["candidates"][2]["probability"], plain["candidates"][2]["probability"]);
  const double ratio =
      std::exp((two["candidates"][0]["logit"].get<double>() - two["candidates"][1]["logit"].get<double>()) / 0.5);
  EXPECT_NEAR(two["candidates"][0]["sampled"].get<double>() / two["candidates"][1]["sampled"].get<double>(), ratio,
              1e-6 * ratio);
  const ChatJson greedy = candidates({{"temperature", 0}});
  EXPECT_EQ(greedy["kept"], 1);
  EXPECT_EQ(greedy["candidates"][0]["sampled"], 1);
}

TEST(Inside, ShowsTheRouterOfAMixture) {
  const ChatJson json = inside(mixture(), {{"prompt", "the moon"}, {"neurons", 16}});
  for (const ChatJson& layer : json["positions"][0]["layers"]) {
    double sum = 0;
    for (const ChatJson& probability : layer["router"]) sum += probability.get<double>();
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_EQ(layer["router"].size(), mixture().llm().config.num_experts);
    ASSERT_EQ(layer["experts"].size(), mixture().llm().config.num_experts_per_tok);
    const std::size_t best = layer["experts"][0]["expert"].get<std::size_t>();
    for (const ChatJson& probability : layer["router"]) EXPECT_GE(layer["router"][best], probability);
    for (const ChatJson& neuron : layer["neurons"]) EXPECT_TRUE(neuron.contains("expert"));
  }
}

TEST(Inside, ComputesWithoutAPart) {
  const ChatJson body{{"prompt", "床前明月光，"}};
  ChatJson less = body;
  less["without"] = {{{"layer", 0}, {"head", 0}}};
  const ChatJson whole = inside(poet(), body), without = inside(poet(), less);
  EXPECT_EQ(whole["attention"][0], without["attention"][0]);
  EXPECT_NE(whole["attention"][1], without["attention"][1]);
  EXPECT_NE(whole["positions"][0]["candidates"], without["positions"][0]["candidates"]);
  less["without"] = ChatJson::array();
  EXPECT_EQ(inside(poet(), less), whole);
}

TEST(Inside, ReadsAChat) {
  const ChatJson json = inside(poet(), {{"messages", {{{"role", "user"}, {"content", "江上"}}}}});
  EXPECT_EQ(json["tokens"][0]["piece"], "<|im_start|>");
}

TEST(Inside, StatesItsLimit) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "月";
  try {
    inside(poet(), {{"prompt", text}});
    FAIL();
  } catch (const RequestError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("the text has 400 tokens, expected at most 240 for a model of 6 layers with 6 heads"),
              std::string::npos)
        << error.what();
    EXPECT_EQ(error.param(), "prompt");
  }
}

class InsideRoute : public testing::Test {
 protected:
  static std::shared_ptr<FakeAnswer> post(Api& api, const std::string& path, const std::string& body) {
    const auto answer = std::make_shared<FakeAnswer>();
    api.handle(
        {.method = "POST", .path = path, .query = "", .headers = {{"content-type", "application/json"}}, .body = body},
        answer);
    return answer;
  }
  static ApiOptions options(bool allowed = true) {
    ApiOptions options;
    options.inside = allowed;
    return options;
  }

  ModelShelf models{{.arguments = arguments_of("/weights/demo/model.pth", ""),
                     .chat_template = "",
                     .limits = {.parallel = 1, .kv_memory = std::size_t{8} << 20, .queue = 8},
                     .models_memory = std::size_t{20} << 20}};
};

TEST_F(InsideRoute, IsOffUnlessAllowed) {
  for (const bool allowed : {true, false}) {
    Api api(models, options(allowed));
    const auto answer = post(api, "/v1/inside", R"({"prompt": "月"})"), list = std::make_shared<FakeAnswer>();
    api.handle({.method = "GET", .path = "/v1/models", .query = "", .headers = {}, .body = ""}, list);
    ASSERT_TRUE(answer->wait() && list->wait());
    EXPECT_EQ(list->json()["data"][0]["minimind"]["inside"], allowed);
    EXPECT_EQ(answer->status(), allowed ? 200 : 403) << answer->body();
    EXPECT_EQ(answer->body().find("--inside") == std::string::npos, allowed) << answer->body();
  }
}

// Takes a second or so.
constexpr const char* long_body =
    R"({"prompt": [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],
        "neurons": 16, "positions": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]})";

TEST_F(InsideRoute, LetsOthersGoOn) {
  Api api(models, options());
  const auto slow = post(api, "/v1/inside", long_body);
  const auto brief = post(api, "/tokenize", R"({"content": "a"})");
  const auto text = post(api, "/v1/completions", R"({"prompt": "a", "max_tokens": 1})");
  ASSERT_TRUE(brief->wait() && text->wait());
  EXPECT_FALSE(slow->has_ended());
  ASSERT_TRUE(slow->wait());
  EXPECT_EQ(slow->status(), 200);
}

TEST_F(InsideRoute, EndsWithItsClient) {
  Api api(models, options());
  const auto slow = post(api, "/v1/inside", long_body);
  slow->disconnect();
  const auto next = post(api, "/v1/inside", R"({"prompt": "月"})");
  ASSERT_TRUE(next->wait()) << "comes after it";
  EXPECT_EQ(next->status(), 200);
  EXPECT_FALSE(slow->has_ended());
}

}  // namespace
}  // namespace minimind
