#include "tools/page/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/golden.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

const std::string demo = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";

// The body of a greedy poem.
constexpr const char* poem =
    R"({"messages": [{"role": "user", "content": "写一首七言绝句，题目：秋夜"}], "temperature": 0, "max_tokens": 40, "stream": true})";

// Runs the engine until it has nothing to do. Returns all events.
ChatJson run(PageEngine& engine) {
  ChatJson all = ChatJson::array();
  for (bool more = true; more;) {
    more = engine.step();
    for (const ChatJson& event : ChatJson::parse(engine.take_events())) all.push_back(event);
  }
  return all;
}

TEST(PageEngine, WritesAStream) {
  PageEngine engine;
  EXPECT_EQ(engine.load({.path = demo}), "minimind-poet");
  engine.ask(7, "v1/chat/completions", poem);
  const ChatJson events = run(engine);
  ASSERT_GT(events.size(), 10);
  EXPECT_EQ(events.front(), ChatJson({7, "start"}));
  const std::string last = events[events.size() - 2][2];
  EXPECT_TRUE(last.starts_with("data: {") && last.ends_with("\n\ndata: [DONE]\n\n")) << last;
  EXPECT_EQ(events.back(), ChatJson({7, "finish"}));
}

TEST(PageEngine, ListsItsModels) {
  PageEngine engine;
  EXPECT_EQ(ChatJson::parse(engine.models())["data"].size(), 0);
  engine.load({.path = demo});
  engine.load({.path = demo});  // takes the place of the first
  const ChatJson models = ChatJson::parse(engine.models())["data"];
  ASSERT_EQ(models.size(), 1);
  EXPECT_EQ(models[0]["id"], "minimind-poet");
  EXPECT_EQ(models[0]["minimind"]["context_length"], 32768);
  EXPECT_EQ(models[0]["minimind"]["thinking"], false);
  EXPECT_EQ(models[0]["minimind"]["inside"], true);
  EXPECT_EQ(models[0]["minimind"]["defaults"]["max_tokens"], 2048);
}

TEST(PageEngine, IsSilentAfterAStop) {
  PageEngine engine;
  engine.load({.path = demo});
  engine.ask(1, "v1/chat/completions", poem);
  engine.step();
  engine.stop(1);
  engine.take_events();
  EXPECT_EQ(run(engine).size(), 0);
}

TEST(PageEngine, AnswersARequestThatIsWrong) {
  PageEngine engine;
  engine.ask(1, "v1/chat/completions", poem);  // there is no model
  engine.load({.path = demo});
  engine.ask(2, "v1/chat/completions", R"({"messages": 3})");
  engine.ask(3, "v1/completions", "{");
  const ChatJson events = run(engine);
  ASSERT_EQ(events.size(), 3);
  for (const ChatJson& event : events) EXPECT_EQ(event[1], "send");
  EXPECT_EQ(events[0][2], 404);
  EXPECT_EQ(events[1][2], 400);
  EXPECT_EQ(events[2][2], 400);
}

TEST(PageEngine, LooksInside) {
  PageEngine engine;
  engine.load({.path = demo});
  engine.ask(1, "v1/inside", R"({"prompt": "夜泊枫桥"})");
  engine.ask(2, "v1/inside", R"({"prompt": "夜泊枫桥", "positions": [99]})");
  engine.ask(3, "v1/outside", R"({"prompt": "夜泊枫桥"})");
  const ChatJson events = run(engine);
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[0][2], 200);
  EXPECT_EQ(ChatJson::parse(events[0][3].get<std::string>())["object"], "inside");
  EXPECT_EQ(events[1][2], 400);
  EXPECT_EQ(events[2][2], 404);
}

TEST(PageEngine, KeepsItsModelsIfAnotherCannotBeRead) {
  PageEngine engine;
  engine.load({.path = demo});
  EXPECT_THROW(engine.load({.path = golden_root() / "v3-dense/model.pth"}), Error);  // without a tokenizer
  EXPECT_THROW(engine.load({.path = demo + ".absent"}), Error);
  EXPECT_EQ(ChatJson::parse(engine.models())["data"].size(), 1);
}

TEST(PageModel, IsReadFromJson) {
  const PageModel model = read_page_model(R"({"path": "a.pth", "loras": ["b.pth"], "rope_scaling": "yarn"})");
  EXPECT_EQ(model.path, "a.pth");
  EXPECT_EQ(model.loras, std::vector<std::string>{"b.pth"});
  EXPECT_EQ(model.rope_scaling, "yarn");
  EXPECT_THROW(read_page_model(R"({"path": "a.pth", "lora": "b.pth"})"), Error);
}

TEST(PageLogits, AreThoseOfPyTorch) {
  const GoldenCase golden = load_golden("v3-lora");
  const std::vector<float> logits =
      page_logits({.path = golden.model_path, .loras = {*golden.lora_path}}, golden.tokens);
  ASSERT_EQ(logits.size(), golden.logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], golden.logits[i], 2e-4);
}

}  // namespace
}  // namespace minimind
