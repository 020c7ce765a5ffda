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

TEST(InsideRoute, IsOffUnlessAllowed) {
  ModelShelf::Settings settings{.arguments = arguments_of("/weights/demo/model.pth", ""),
                                .chat_template = "",
                                .limits = {.parallel = 1, .kv_memory = std::size_t{8} << 20, .queue = 8},
                                .models_memory = std::size_t{20} << 20};
  ModelShelf models(std::move(settings));
  const auto ask = [&](bool allowed) {
    ApiOptions options;
    options.inside = allowed;
    Api api(models, options);
    const auto answer = std::make_shared<FakeAnswer>();
    api.handle({.method = "POST",
                .path = "/v1/inside",
                .query = "",
                .headers = {{"content-type", "application/json"}},
                .body = R"({"prompt": "月"})"},
               answer);
    EXPECT_TRUE(answer->wait());
    const auto list = std::make_shared<FakeAnswer>();
    api.handle({.method = "GET", .path = "/v1/models", .query = "", .headers = {}, .body = ""}, list);
    EXPECT_TRUE(list->wait());
    EXPECT_EQ(list->json()["data"][0]["minimind"]["inside"], allowed);
    return answer;
  };
  EXPECT_EQ(ask(true)->json()["object"], "inside");
  const auto refused = ask(false);
  EXPECT_EQ(refused->status(), 403);
  EXPECT_NE(refused->body().find("--inside"), std::string::npos) << refused->body();
}

}  // namespace
}  // namespace minimind
