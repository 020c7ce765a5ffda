// MiniMind's training data, as `perplexity --jsonl`, `chat --load` and `render` read it.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/chat/message_json.h"
#include "tests/support/cases.h"
#include "tests/support/cli.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

const std::string data = MINIMIND_SOURCE_DIR "/tests/golden_dataset/";

class TrainingText : public Cli {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }

  Json scores(const std::string& file, const std::string& options = "") const {
    const Outcome outcome = run("perplexity --json -q --jsonl -f " + file + options + demo);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }

  void expect_refused(int status, const std::string& line, const std::string& options,
                      const std::vector<std::string>& parts) const {
    const Outcome outcome =
        run("perplexity -q --jsonl -f " + write("bad.jsonl", "\"床前明月光\"\n" + line + "\n") + options + demo);
    EXPECT_EQ(outcome.status, status) << line;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << line << ": " << outcome.err;
    }
  }

  // The nats of the second part after the first, which is nothing but text here.
  double nats_of(const std::string& prompt, const std::string& text) const {
    const Json json = scores(write("answer.jsonl", Json{{"prompt", prompt}, {"text", text}}.dump() + "\n"));
    return json["nats_per_token"].get<double>() * json["tokens"].get<double>();
  }
};

// Of MiniMind's dataset and model in PyTorch, with the bundled checkpoint:
//   python tools/reference/dataset_loss.py MINIMIND weights/demo/model.pth weights/demo tests/golden_dataset/sft.jsonl
//     --config '{"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 2,
//                "head_dim": 32, "intermediate_size": 416}'
// and the same with pretrain.jsonl and dpo.jsonl.
TEST_F(TrainingText, LossIsThatOfMiniMindsDatasetAndModel) {
  const Json sft = scores(data + "sft.jsonl");
  EXPECT_EQ(sft["tokens"], 56);
  EXPECT_NEAR(sft["nats_per_token"].get<double>(), 6.851651115634125, 1e-5);
  const Json pretrain = scores(data + "pretrain.jsonl");
  EXPECT_EQ(pretrain["tokens"], 34);
  EXPECT_NEAR(pretrain["nats_per_token"].get<double>(), 9.472794927595912, 1e-5);
  const Json dpo = scores(data + "dpo.jsonl");
  EXPECT_EQ(dpo["chosen"]["tokens"], 10);
  EXPECT_NEAR(dpo["chosen"]["nats_per_token"].get<double>(), 4.5867874150057375, 1e-5);
  EXPECT_EQ(dpo["rejected"]["tokens"], 9);
  EXPECT_NEAR(dpo["rejected"]["nats_per_token"].get<double>(), 12.346505357480241, 1e-5);
  EXPECT_EQ(dpo["tokens"], 19);
}

TEST_F(TrainingText, OfAConversationTheAssistantsTurnsAreScored) {
  const std::string line =
      R"({"conversations": [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "春眠"},)"
      R"({"content": "再来"}, {"content": "不觉晓"}], "source": "web"})";
  const std::string first = "<|im_start|>user\n你好<|im_end|>\n<|im_start|>assistant\n",
                    answer = "<think>\n\n</think>\n\n春眠<|im_end|>\n",
                    second = "<|im_start|>user\n再来<|im_end|>\n<|im_start|>assistant\n",
                    last = "<think>\n\n</think>\n\n不觉晓<|im_end|>\n";
  const std::string file = write("one.jsonl", line + "\n");
  // The bundled poet's own template has the last turn alone; without it, that of v3 is used.
  std::filesystem::create_directory(path("tokenizer"));
  for (const char* name : {"/tokenizer.json", "/tokenizer_config.json"}) {
    std::filesystem::copy(std::string(MINIMIND_SOURCE_DIR "/weights/demo") + name, path("tokenizer") + name);
  }
  const std::string tokenizer = " --tokenizer " + path("tokenizer");
  const Json json = scores(file, tokenizer);
  EXPECT_NEAR(json["nats_per_token"].get<double>() * json["tokens"].get<double>(),
              nats_of(first, answer) + nats_of(first + answer + second, last), 1e-6);
  const Json all = scores(file, " --all-turns" + tokenizer);
  const Json whole = scores(write("whole.jsonl", Json(first + answer + second + last).dump()));
  EXPECT_EQ(all["tokens"], whole["tokens"]);
  EXPECT_NEAR(all["nats_per_token"].get<double>(), whole["nats_per_token"].get<double>(), 1e-9);
  EXPECT_GT(all["tokens"], json["tokens"]);
}

TEST_F(TrainingText, OfAnyLengthIsReadInOneContext) {
  std::string answer;
  for (unsigned i = 0; i < cases(400); ++i) answer += "白云深处";
  const Json conversation{
      {"conversations", {{{"role", "user"}, {"content", "a"}}, {{"role", "assistant"}, {"content", answer}}}}};
  const Json json = scores(write("long.jsonl", conversation.dump()));
  EXPECT_GT(json["tokens"], cases(600));
  EXPECT_GT(json["ctx_size"], cases(2000));
}

TEST_F(TrainingText, ErrorsNameTheLine) {
  expect_refused(1, R"({"conversations": []})", "", {"line 2", "empty list"});
  expect_refused(1, R"({"conversations": "a"})", "", {"line 2", "expected a list"});
  expect_refused(1, R"({"conversations": [1]})", "", {"line 2", "conversations[0]", "expected an object"});
  expect_refused(1, R"({"conversations": [{"role": "user", "content": "a"}]})", "", {"line 2", "--all-turns"});
  expect_refused(1, R"({"conversations": [{"role": "assistant", "content": "", "tool_calls": "[1"}]})", "",
                 {"line 2", "tool_calls"});
  expect_refused(1, R"({"text": 1})", "", {"line 2", "\"text\""});
  expect_refused(1, R"({"chosen": []})", "", {"line 2", "rejected"});
  expect_refused(1, "{\"conversations\"", "", {"line 2"});
  expect_refused(2, "\"a b c\"", " --all-turns", {"--all-turns"});
  const Outcome outcome = run("perplexity -q --all-turns -p text" + demo);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--jsonl"), std::string::npos) << outcome.err;
}

TEST_F(TrainingText, RenderReadsItsConversationsAndTools) {
  const std::string model = " -m " + load_golden("v3-dense").model_path;
  const std::string plain =
      R"({"messages": [{"role": "user", "content": "北京天气？"}, {"role": "assistant", "content": "",)"
      R"( "tool_calls": [{"name": "weather", "arguments": {"city": "北京"}}]}], "tools": [{"name": "weather"}]})";
  const std::string trained =
      R"({"conversations": [{"role": "user", "content": "北京天气？", "tool_calls": null}, {"role": "assistant",)"
      R"( "content": "", "tool_calls": "[{\"name\": \"weather\", \"arguments\": {\"city\": \"北京\"}}]"}],)"
      R"( "tools": [{"name": "weather"}]})";
  const std::string expected = run("render -f " + write("a.json", plain) + model).out;
  ASSERT_NE(expected.find("<tool_call>"), std::string::npos) << expected;
  EXPECT_EQ(run("render -f " + write("b.json", trained) + model).out, expected);
  for (const char* tools : {R"([{"name": "weather"}])", R"("[{\"name\": \"weather\"}]")"}) {
    const std::string line = R"({"conversations": [{"role": "system", "content": "# Tools", "tools": )" +
                             std::string(tools) + R"(}, {"role": "user", "content": "a"}]})";
    const std::string prompt = run("render -f " + write("c.json", line) + model).out;
    EXPECT_NE(prompt.find("# Tools\n\n# Tools"), std::string::npos) << prompt;
    EXPECT_NE(prompt.find(R"({"name": "weather"})"), std::string::npos) << prompt;
  }
  EXPECT_EQ(run("render --jsonl -f " + data + "sft.jsonl" + model).status, 0);
}

TEST(TrainingConversation, IsLoadedAsAConversation) {
  const SavedConversation saved = parse_conversation(
      R"({"conversations": [{"role": "system", "content": "# Tools", "tools": "[{\"name\": \"f\"}]"},)"
      R"({"role": "user", "content": "a", "reasoning_content": "", "tools": null},)"
      R"({"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": "[{\"name\": \"f\", \"arguments\": {}}]"},)"
      R"({"role": "tool", "content": "1"}], "gt": ["1"]})",
      "x");
  ASSERT_EQ(saved.messages.size(), 4u);
  EXPECT_EQ(saved.tools, R"([{"name": "f"}])");
  EXPECT_EQ(saved.messages[0].content, "# Tools");
  EXPECT_EQ(saved.messages[2].reasoning, "hm");
  EXPECT_EQ(saved.messages[2].tool_calls.at(0).name, "f");
  EXPECT_EQ(saved.messages[3].role, Role::tool);
  EXPECT_EQ(parse_conversation(R"({"conversations": [{"role": "system", "content": "s", "functions": [{"name": "f"}]},)"
                               R"({"role": "user", "content": "a", "tools": [], "functions": []}]})",
                               "x")
                .tools,
            saved.tools);
  EXPECT_EQ(error_of([] {
              parse_conversation(R"({"conversations": [{"role": "system", "content": "s", "tools": "1"}]})", "x");
            }),
            "x: conversations[0].tools is an integer, expected a list or the JSON text of one");
  EXPECT_NE(error_of([] {
              parse_conversation(R"({"conversations": [{"role": "user", "content": "a", "x": 1}]})", "x");
            }).find("'x'"),
            std::string::npos);
}

TEST_F(TrainingText, ChatContinuesALoadedLine) {
  const std::string line =
      R"({"conversations": [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "春眠"}]})";
  const Outcome outcome = run("chat --greedy -n 3 -p 再来 --load " + write("line.jsonl", line + "\n") + " --save " +
                              path("saved.json") + demo);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(Json::parse(read_whole_file(path("saved.json")))["messages"].size(), 4u);
}

}  // namespace
}  // namespace minimind
