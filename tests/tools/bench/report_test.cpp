#include "tools/bench/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace minimind {
namespace {

BenchReport small_report() {
  BenchReport report{.model = "model.pth",
                     .family = "v3",
                     .parameters = 63'910'000,
                     .machine = "Some CPU",
                     .cores = 2,
                     .kernels = "avx2",
                     .repetitions = 3,
                     .complete = true,
                     .results = {},
                     .limits = {}};
  const BenchResult common{.type = "q8_0",
                           .threads = 2,
                           .test = {},
                           .kv_type = KvType::f32,
                           .weight_bytes = 200'000'000,
                           .weight_bytes_per_token = 90e6,
                           .cache_bytes_per_token = 10e6,
                           .flops = 0,
                           .arithmetic = LimitKind::multiply_add,
                           .tokens_per_second = {}};
  BenchResult prompt = common, decode = common;
  prompt.test = {BenchKind::prompt, 512};
  prompt.flops = 512 * 1e8;
  prompt.tokens_per_second = {400, 600, 500};
  decode.test = {BenchKind::decode, 128, 1024};
  decode.tokens_per_second = {90, 110, 100};
  report.results = {prompt, decode};
  // Limits that do not apply come first: another number of threads, another buffer.
  report.limits = {{LimitKind::reading_weights, 1, 200'000'000, {5e9}},
                   {LimitKind::reading_weights, 2, 100'000'000, {80e9}},
                   {LimitKind::reading_weights, 2, 200'000'000, {20e9, 10e9, 40e9}},
                   {LimitKind::reading_cache, 2, 16'000'000, {100e9}},
                   {LimitKind::multiply_add, 2, 0, {100e9}},
                   {LimitKind::multiply_add_int8, 2, 0, {250e9}}};
  return report;
}

TEST(BenchReport, NamesTests) {
  EXPECT_EQ(name_of({BenchKind::prompt, 512}), "prompt 512");
  EXPECT_EQ(name_of({BenchKind::decode, 128}), "decode 128");
  EXPECT_EQ(name_of({BenchKind::decode, 128, 1024}), "decode 128 after 1024");
  EXPECT_EQ(name_of({BenchKind::decode, 128, 0, 8}), "8 x decode 128");
  EXPECT_EQ(name_of({BenchKind::decode, 128, 1024, 8}), "8 x decode 128 after 1024");
}

TEST(BenchReport, ComparesEachResultWithItsLimit) {
  const BenchReport report = small_report();
  EXPECT_DOUBLE_EQ(fraction_reached(report, report.results[0]).value(), 0.5);  // 500/s x 1e8 flop of 100e9
  EXPECT_DOUBLE_EQ(fraction_reached(report, report.results[1]).value(), 0.5);  // 100/s x 100 MB of 20e9
  BenchResult of_int8 = report.results[0];
  of_int8.arithmetic = LimitKind::multiply_add_int8;
  EXPECT_DOUBLE_EQ(fraction_reached(report, of_int8).value(), 0.2);  // of 250e9
  BenchResult of_bf16 = report.results[0];
  of_bf16.arithmetic = LimitKind::multiply_add_bf16;
  EXPECT_FALSE(fraction_reached(report, of_bf16));
  BenchReport without = report;
  without.limits.push_back({LimitKind::multiply_add_bf16, 2, 0, {500e9}});
  EXPECT_DOUBLE_EQ(fraction_reached(without, of_bf16).value(), 0.1);
  without.limits.clear();
  EXPECT_FALSE(fraction_reached(without, report.results[0]));
}

TEST(BenchReport, TextHasALineForEachResultAndLimit) {
  BenchReport report = small_report();
  report.results.push_back(report.results[0]);
  report.results.back().arithmetic = LimitKind::multiply_add_int8;
  const std::string text = to_text(report);
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "model.pth: v3, 63.91 M parameters\nSome CPU, 2 cores, avx2 kernels; 3 repetitions, in turns");
  for (const char* line :
       {"type    threads  test                               tokens/s      least       most     rate         reached\n",
        "q8_0          2  prompt 512                            500.0      400.0      600.0     50.0 GFLOP/s     50%\n",
        "q8_0          2  prompt 512                            500.0      400.0      600.0     50.0 GOP/s       20%\n",
        "q8_0          2  decode 128 after 1024                 100.0       90.0      110.0     10.0 GB/s        50%\n",
        "              2  reading 200.0 MB, like the weights     20.0 GB/s (10.0 to 40.0)\n",
        "              2  reading 16.0 MB, half the cache      100.0 GB/s (100.0 to 100.0)\n",
        "              2  f32 multiply-add in registers        100.0 GFLOP/s (100.0 to 100.0)\n",
        "              2  int8 multiply-add in registers       250.0 GOP/s (250.0 to 250.0)\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  }
}

TEST(BenchReport, GivesTheSpeedOfAllTextsAndOfEach) {
  BenchReport report = small_report();
  report.results[1].test.texts = 4;
  EXPECT_FALSE(fraction_reached(report, report.results[1]));
  const std::string text = to_text(report);
  EXPECT_NE(text.find("4 x decode 128 after 1024             100.0       90.0      110.0     25.0 for each text\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(to_json(report)["results"][1]["texts"], 4);
}

TEST(BenchReport, OmitsAndNotesInterruptedTests) {
  BenchReport report = small_report();
  report.complete = false;
  report.results[1].tokens_per_second.clear();
  report.limits[4].per_second.clear();
  const std::string text = to_text(report);
  EXPECT_NE(text.find("interrupted"), std::string::npos);
  EXPECT_EQ(text.find("decode 128"), std::string::npos);
  EXPECT_NE(text.find("prompt 512"), std::string::npos);
  const auto json = to_json(report);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["results"].size(), 1u);
  EXPECT_TRUE(json["results"][0]["fraction_of_limit"].is_null());
  EXPECT_EQ(json["limits"].size(), 5u);
}

TEST(BenchReport, JsonHasEverySampleInBasicUnits) {
  const auto json = to_json(small_report());
  EXPECT_EQ(json["machine"], "Some CPU");
  EXPECT_EQ(json["kernels"], "avx2");
  const auto& prompt = json["results"][0];
  EXPECT_EQ(prompt["test"], "prompt");
  EXPECT_EQ(prompt["tokens_per_second"]["samples"], (std::vector<double>{400, 600, 500}));
  EXPECT_DOUBLE_EQ(prompt["flops_per_second"], 50e9);
  const auto& decode = json["results"][1];
  EXPECT_EQ(decode["test"], "decode");
  EXPECT_EQ(decode["depth"], 1024);
  EXPECT_EQ(decode["tokens_per_second"]["median"], 100);
  EXPECT_DOUBLE_EQ(decode["bytes_per_second"], 10e9);
  EXPECT_EQ(json["limits"][2]["kind"], "reading_weights");
  EXPECT_EQ(json["limits"][2]["bytes_per_second"]["least"], 10e9);
  EXPECT_EQ(json["limits"][4]["flops_per_second"]["median"], 100e9);
  EXPECT_EQ(json["limits"][5]["kind"], "multiply_add_int8");
  EXPECT_EQ(json["limits"][5]["operations_per_second"]["median"], 250e9);
}

TEST(SpreadOf, GivesTheMedian) {
  const Spread odd = spread_of({5, 1, 100});
  EXPECT_EQ(odd.median, 5);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 100);
  EXPECT_EQ(spread_of({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(spread_of({7}).median, 7);
}

}  // namespace
}  // namespace minimind
