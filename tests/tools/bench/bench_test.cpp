#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/cases.h"
#include "tests/support/cli.h"
#include "tests/support/peak_memory.h"
#include "tests/support/running.h"

namespace minimind {
namespace {

const std::string quick = "bench -r 1 -n 4 -p 16";

TEST_F(Cli, BenchMeasuresTheDemo) {
  const Outcome outcome = run(quick + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"prompt 16", "decode 4", "GB/s", "GFLOP/s", "kernels; 1 repetition", "multiply-add"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in\n" << outcome.out;
  }
}

TEST_F(Cli, BenchTriesEveryTypeThreadCountAndTest) {
  const Outcome outcome = run("bench -r 2 -n 3 -p 8,16 -d 0,20 -t 1,2 --type f16,q8_0 --json -q" + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(json["complete"]);
  EXPECT_EQ(json["repetitions"], 2);
  std::set<std::string> configurations;
  for (const auto& result : json["results"]) {
    EXPECT_EQ(result["tokens_per_second"]["samples"].size(), 2u);
    EXPECT_GT(result["tokens_per_second"]["least"], 0);
    EXPECT_GT(result["fraction_of_limit"], 0);
    configurations.insert(result["type"].dump() + result["threads"].dump() + result["test"].dump() +
                          result["tokens"].dump() + result["depth"].dump());
  }
  EXPECT_EQ(json["results"].size(), 2u * 2 * 4);
  EXPECT_EQ(configurations.size(), 2u * 2 * 4);
  // For each number of threads: the weights of two types, half the cache if its size is known, the arithmetic of both.
  EXPECT_GE(json["limits"].size(), 2u * 4);
  EXPECT_LE(json["limits"].size(), 2u * 5);
}

TEST_F(Cli, BenchDecodesManyTextsTogether) {
  const Outcome outcome = run("bench -r 1 -p 0 -n 3 -d 0,20 --parallel 1,3 --json -q" + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::set<std::string> tests;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& result : json["results"]) {
    tests.insert(result["depth"].dump() + " " + result["texts"].dump());
    EXPECT_EQ(result.contains("bytes_per_second"), result["texts"] == 1);
  }
  EXPECT_EQ(tests, (std::set<std::string>{"0 1", "0 3", "20 1", "20 3"}));
  const std::string text = run("bench -r 1 -p 0 -n 3 --parallel 3" + demo).out;
  EXPECT_NE(text.find("3 x decode 3"), std::string::npos) << text;
  EXPECT_NE(text.find(" for each text\n"), std::string::npos) << text;
}

TEST_F(Cli, BenchDecodesTextsThatShareAPromptBesideThoseThatDoNot) {
  const Outcome outcome = run("bench -r 1 -p 0 -n 3 -d 20,70 --parallel 1,3 --shared-prompt --json -q" + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::multiset<std::string> tests;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& result : json["results"]) {
    tests.insert(result["depth"].dump() + " " + result["texts"].dump() + " " + result["shared_prompt"].dump());
  }
  EXPECT_EQ(tests, (std::multiset<std::string>{"20 1 false", "20 3 false", "70 1 false", "70 3 false", "70 3 true"}));
  const std::string text = run("bench -r 1 -p 0 -n 3 -d 70 --parallel 3 --shared-prompt" + demo).out;
  EXPECT_NE(text.find("3 x decode 3 after 70 shared"), std::string::npos) << text;
  EXPECT_NE(text.find("shared: the texts begin with one prompt"), std::string::npos) << text;
}

TEST_F(Cli, BenchSaysWhatTakesTheMemory) {
  const auto parts = [&](const std::string& arguments) {
    const Outcome outcome = run("bench --memory -t 1 --json" + arguments + demo);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::ordered_json::parse(outcome.out);
  };
  const auto f16 = parts(" -p 16 -n 4"), f32 = parts(" -p 16 -n 4 --type f32"),
             longer = parts(" -p 600 -n 4 --kv-type f32");
  const double megabyte = 1e6;
  if (can_measure_memory) {  // the demo has 4.4 M parameters
    EXPECT_NEAR(double(f32["weights"]) - double(f16["weights"]), 8.7 * megabyte, 3 * megabyte);
  }
  EXPECT_GT(longer["keys and values"], 15 * f16["keys and values"].get<double>());
  EXPECT_GT(f16["tokenizer"], 0);
  double sum = 0;
  for (const char* part : {"program", "weights", "tokenizer", "keys and values", "a step"})
    sum += f16[part].get<double>();
  EXPECT_EQ(f16["together"], sum);
  EXPECT_GE(f16["most at one time"], f16["together"]);
  const std::string text = run("bench --memory -p 16 -n 4" + demo).out;
  EXPECT_NE(text.find("16 + 4 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("keys and values"), std::string::npos) << text;
}

TEST_F(Cli, BenchOfMemoryTakesOneOfEach) {
  EXPECT_NE(run("bench --memory -p 16,32" + demo).err.find("--prompt has 2 values, expected one"), std::string::npos);
  EXPECT_EQ(run("bench --memory -p 16 -d 3" + demo).status, 2);
}

TEST_F(Cli, BenchUsesTheRequestedKvType) {
  for (const char* type : {"f32", "f16", "q8_0"}) {
    const Outcome outcome = run(quick + " -d 40 --json -q --kv-type " + type + demo);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["results"][1]["kv_type"], type);
  }
}

TEST_F(Cli, BenchOmitsTestsOfZeroTokens) {
  const auto tests_of = [&](const std::string& arguments) {
    const auto json = nlohmann::json::parse(run("bench -r 1 --json -q " + arguments + demo).out);
    std::vector<std::string> tests;
    for (const auto& result : json["results"]) tests.push_back(result["test"]);
    return tests;
  };
  EXPECT_EQ(tests_of("-p 0 -n 2"), std::vector<std::string>{"decode"});
  EXPECT_EQ(tests_of("-p 4 -n 0"), std::vector<std::string>{"prompt"});
}

TEST_F(Cli, BenchRejectsWrongValuesInOneLine) {
  for (const char* arguments : {"-p 0 -n 0",
                                "-p x",
                                "-p -1",
                                "-p 1,,2",
                                "-p 2000000",
                                "-n -1",
                                "-d 1,1",
                                "--parallel 0",
                                "--parallel 2,2",
                                "--shared-prompt",
                                "--shared-prompt -d 1024",
                                "--shared-prompt -d 20 --parallel 2",
                                "--parallel 1000",
                                "-t 0",
                                "-t 1,2,",
                                "-t 2000",
                                "-r 0",
                                "--type f17",
                                "--type f16,",
                                "--type f16,f16",
                                "--type f16,FP16"}) {
    const Outcome outcome = run("bench " + std::string(arguments) + demo);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

TEST_F(Cli, CtrlCEndsBenchWithTheResultsSoFar) {
  Running running("bench -p 16 -n 4 -r 10000 -t 1 --json" + demo, path("out"), path("err"));
  ASSERT_TRUE(running.reach(3 * slowness));  // the first limit is to read half of the last cache, which may be 240 MB
  EXPECT_EQ(running.interrupt(SIGINT).first, 130) << read_whole_file(path("err"));
  const auto json = nlohmann::json::parse(read_whole_file(path("out")));
  EXPECT_FALSE(json["complete"]);
  ASSERT_EQ(json["results"].size(), 2u);
  EXPECT_LT(json["results"][0]["tokens_per_second"]["samples"].size(), 10000u);
}

TEST_F(Cli, PrintsAProfileIfTheEnvironmentRequestsIt) {
  const std::string generate = "generate -q --tokens 3,4,5 -n 4 --greedy --ignore-eos" + demo;
  const Outcome plain = run(generate), profiled = run(generate, "MINIMIND_PROFILE=1");
  EXPECT_EQ(plain.err, "");
  EXPECT_EQ(run(generate, "MINIMIND_PROFILE=0").err, "");
  EXPECT_EQ(profiled.out, plain.out);
  for (const char* part : {"prompt: 3 tokens in 1 pass", "decode: 3 tokens in 3 passes", "lm_head"}) {
    EXPECT_NE(profiled.err.find(part), std::string::npos) << part << " in\n" << profiled.err;
  }
  const Outcome bench = run(quick + " -q" + demo, "MINIMIND_PROFILE=1");
  EXPECT_NE(bench.err.find("decode 4\ndecode: 4 tokens in 4 passes"), std::string::npos) << bench.err;
  const Outcome wrong = run(generate, "MINIMIND_PROFILE=yes");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("MINIMIND_PROFILE"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace minimind
