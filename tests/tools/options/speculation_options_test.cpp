#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tests/support/cases.h"
#include "tests/support/cli.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

const std::string quoted_poem = " -p '五言绝句《山居》\n空山新雨后，天气晚来秋。\n空山新雨后，天气晚来秋。\n空山新雨'";

TEST_F(Cli, SpeculationDoesNotChangeTheText) {
  const std::string length = fmt::format(" -n {} ", cases(80));
  constexpr std::array ways{"--seed 4 --repeat-penalty 1.2", "--seed 5 --dry-multiplier 1 --stop 。 -c 60",
                            "--greedy --ignore-eos", "--seed 3"};
  for (const std::string how : std::span(ways).first(cases(ways.size(), 2))) {
    const std::string call = "generate " + how + length + demo + quoted_poem;
    const Outcome plain = run(call);
    ASSERT_EQ(plain.status, 0) << plain.err;
    ASSERT_FALSE(plain.out.empty());
    for (const std::string ahead : {" --speculate 0", " --speculate 1", " --speculate 8", " --speculate 64",
                                    " --draft " MINIMIND_SOURCE_DIR "/weights/demo/model.pth",
                                    " --speculate 2 --draft " MINIMIND_SOURCE_DIR "/weights/demo/model.pth"}) {
      const Outcome outcome = run(call + ahead);
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      EXPECT_EQ(outcome.out, plain.out) << how << ahead;
    }
  }
}

TEST_F(Cli, SpeculationIsReported) {
  const std::string call = "generate --greedy --ignore-eos -n 50 --json" + demo + quoted_poem;
  EXPECT_FALSE(Json::parse(run(call).out).contains("speculation"));
  EXPECT_FALSE(Json::parse(run(call + " --speculate 0").out).contains("speculation"));
  const Json lookup = Json::parse(run(call + " --speculate 8").out)["speculation"];
  EXPECT_GT(lookup["accepted"], 0);
  EXPECT_GE(lookup["drafted"], lookup["accepted"]);
  EXPECT_DOUBLE_EQ(lookup["acceptance_rate"].get<double>(),
                   lookup["accepted"].get<double>() / lookup["drafted"].get<double>());
  const Json itself =
      Json::parse(run(call + " --draft " MINIMIND_SOURCE_DIR "/weights/demo/model.pth").out)["speculation"];
  EXPECT_EQ(itself["acceptance_rate"], 1);
  const Json none = Json::parse(run("generate --greedy -n 1 --json --speculate 8 -p a" + demo).out)["speculation"];
  EXPECT_EQ(none["drafted"], 0);
  EXPECT_TRUE(none["acceptance_rate"].is_null());
}

TEST_F(Cli, InvalidSpeculationIsRejectedNamingTheOption) {
  for (const char* arguments : {"--speculate 65", "--speculate 1000000000", "--speculate -1", "--speculate x",
                                "--draft ''", "--speculate 0 --draft " MINIMIND_SOURCE_DIR "/weights/demo"}) {
    const Outcome outcome = run("generate -p a " + std::string(arguments) + demo);
    EXPECT_EQ(outcome.status, 2) << arguments;
    const std::string name = std::string(arguments).find("--draft") == std::string::npos ? "--speculate" : "--draft";
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Cli, ADraftModelWithAnotherVocabularyIsRejected) {
  const Outcome outcome = run("generate -p a --draft " + load_golden("v3-dense").model_path + demo);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("v3-dense"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("a vocabulary of 96"), std::string::npos) << outcome.err;
}

TEST_F(Cli, ADraftModelWithOtherTokensIsRejected) {
  const std::string folder = MINIMIND_SOURCE_DIR "/weights/demo/";
  std::filesystem::copy(folder + "model.pth", path("draft.pth"));
  Json tokenizer = Json::parse(read_whole_file(folder + "tokenizer.json"));
  std::ofstream(path("tokenizer.json")) << tokenizer;
  const std::string call = "generate -p a -n 3 --draft " + path("draft.pth") + demo;
  EXPECT_EQ(run(call).status, 0);
  Json& vocab = tokenizer["model"]["vocab"];
  std::swap(vocab["!"], vocab["?"]);
  std::ofstream(path("tokenizer.json")) << tokenizer;
  const Outcome outcome = run(call);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("draft.pth: token "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("is '?', expected '!'"), std::string::npos) << outcome.err;
}

TEST_F(Cli, TypeAndLoraDoNotApplyToTheDraftModel) {
  const GoldenCase golden = load_golden("v3-lora");
  const std::string call = "generate --greedy -n 20 --ignore-eos --json --tokens 3,4" + model_options(golden);
  const Json plain = Json::parse(run(call).out);
  const Json ahead = Json::parse(run(call + " --type q8_0 --draft " + golden.model_path).out);
  EXPECT_LT(ahead["speculation"]["acceptance_rate"], 1) << "it drafts without the LoRA";
  EXPECT_EQ(Json::parse(run(call + " --draft " + golden.model_path).out)["tokens"], plain["tokens"]);
}

TEST_F(Cli, TheDraftModelHasTheKvTypeOfTheModel) {
  const std::string draft = path("draft.gguf");
  ASSERT_EQ(run("convert " MINIMIND_SOURCE_DIR "/weights/demo " + draft + " --type q8_0").status, 0);
  const std::string call = "generate -p a -n 3 --greedy --draft " + draft + demo;
  const std::string chosen = "the KV cache is f16";  // the type for quantized weights, unless one is given
  EXPECT_NE(run(call).err.find(chosen), std::string::npos);
  EXPECT_EQ(run(call + " --kv-type f32").err.find(chosen), std::string::npos);
}

}  // namespace
}  // namespace minimind
