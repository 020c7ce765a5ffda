#include "tools/options/generation_options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/cli.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

TEST(SamplingArguments, ALogitBiasIsAnIdASignAndANumber) {
  const auto expect = [](const std::string& text, std::int32_t token, double bias) {
    const LogitBias parsed = parse_logit_bias(text);
    EXPECT_EQ(parsed.token, token) << text;
    EXPECT_EQ(parsed.bias, bias) << text;
  };
  expect("15043+1", 15043, 1);
  expect("15043-0.5", 15043, -0.5);
  expect("0-inf", 0, -std::numeric_limits<double>::infinity());
  for (const std::string bad :
       {"", "5", "+1", "5+", "5=1", "5+x", "5+1x", "-5+1", "5--1", "5+-1", "x+1", "5+nan", "99999999999+1"}) {
    EXPECT_THROW(parse_logit_bias(bad), UsageError) << bad;
  }
}

class ConstrainedCli : public Cli {};

TEST_F(ConstrainedCli, WritesTextOfTheSchema) {
  std::ofstream(path("s.json")) << R"({"properties":{"line":{"type":"string","maxLength":9}},"required":["line"]})";
  const Outcome outcome = run("generate -p 山 --seed 1" + demo + " --json-schema " + path("s.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(nlohmann::json::parse(outcome.out)["line"].is_string()) << outcome.out;
  const Outcome json = run("generate -q -p 山 --seed 1 --json" + demo + " --json-schema " + path("s.json"));
  EXPECT_EQ(nlohmann::json::parse(json.out)["conforms"], true);
  EXPECT_FALSE(nlohmann::json::parse(run("generate -q -p 山 -n 1 --json" + demo).out).contains("conforms"));
}

TEST_F(ConstrainedCli, WritesTheWhitespaceAndTheReferencesThatAreGiven) {
  std::ofstream(path("item.json")) << R"({"const": "a"})";
  std::ofstream(path("s.json")) << R"({"type": "array", "items": {"$ref": "urn:a=b"}, "minItems": 2, "maxItems": 2})";
  const std::string call =
      "generate -q -p 山 --json-schema " + path("s.json") + " --schema-ref urn:a=b=" + path("item.json") + demo;
  EXPECT_EQ(run(call + " --whitespace none").out, "[\"a\",\"a\"]");
  EXPECT_EQ(nlohmann::json::parse(run(call + " --open-schema").out), nlohmann::json({"a", "a"}));
}

TEST_F(ConstrainedCli, ReportsATruncatedText) {
  std::ofstream(path("g.gbnf")) << "root ::= \"春风吹又生\" [一-龥]{20}";
  const std::string call = "generate -p 山 --seed 1" + demo + " --grammar " + path("g.gbnf");
  EXPECT_NE(run(call + " -n 3").err.find("ended by --max-tokens before the grammar was complete"), std::string::npos);
  EXPECT_NE(run(call + " -c 4").err.find("ended by --ctx-size before the grammar was complete"), std::string::npos);
  EXPECT_NE(run(call + " --stop 吹").err.find("ended by --stop before the grammar was complete"), std::string::npos);
  EXPECT_EQ(run(call + " -n 3 -q").err, "");
  EXPECT_EQ(run(call).err.find("before the grammar"), std::string::npos);
}

TEST_F(ConstrainedCli, UsageErrorsDifferFromFileErrors) {
  std::ofstream(path("g.gbnf")) << "root ::= x";
  std::ofstream(path("s.json")) << R"({"not":{"unevaluatedItems":false}})";
  std::ofstream(path("o.json")) << R"({"tyep":"string"})";
  std::ofstream(path("many.json")) << R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1})";
  const auto expect = [&](const std::string& options, int status, const std::string& message) {
    const Outcome outcome = run("generate -p 山 -n 1" + demo + " " + options);
    EXPECT_EQ(outcome.status, status) << options << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << options << "\n" << outcome.err;
  };
  expect("--grammar " + path("g.gbnf"), 1, "g.gbnf:1:10: there is no rule 'x'");
  expect("--json-schema " + path("s.json"), 1,
         "s.json: #/not: unevaluatedProperties and unevaluatedItems are not supported where");
  expect("--json-schema " + path("o.json") + " --strict-schema", 1, "o.json: tyep is not supported");
  expect("--json-schema " + path("o.json"), 0, "o.json: ignored, because they say nothing about what is valid: tyep");
  expect("--json-schema " + path("many.json"), 0, "is valid: a, b, c, d, e, f, g, h, i, j, ... (11 in all); --strict");
  for (const std::string bad : {"x", "=x", "x="}) {
    expect("--json-schema " + path("o.json") + " --schema-ref " + bad, 2,
           "--schema-ref is '" + bad + "', expected URI=FILE");
  }
  expect("--regex '\xff'", 2, "--regex is not UTF-8");
  expect("--whitespace none", 2, "are for --json-schema");
  expect("--open-schema", 2, "are for --json-schema");
  expect("--json-schema " + path("o.json") + " --open-schema --closed", 2, "give either --open-schema or");
  expect("--grammar a --json-schema b", 2,
         "--grammar, --regex and --json-schema each say what the whole text is; give one of them");
  expect("--grammar " + path("missing"), 1, "missing");
  expect("--logit-bias 5", 2, "--logit-bias is '5'");
  expect("--logit-bias 999999-1", 2, "the logit bias names token 999999");
  expect("--dry-sequence-breaker none --dry-sequence-breaker x", 2, "--dry-sequence-breaker none");
  expect("--dry-base 0.5", 2, "--dry-base is 0.5");
  expect("--typical-p 2", 2, "--typical-p is 2");
  expect("--greedy --temperature 0.5", 2, "--temperature excludes --greedy");
}

TEST_F(ConstrainedCli, AGrammarRequiresATokenizer) {
  const GoldenCase golden = load_golden("v3-dense");
  std::ofstream(path("g.gbnf")) << "root ::= \"a\"";
  const std::string call = "generate --tokens 1,2 -n 2" + model_options(golden);
  const Outcome outcome = run(call + " --grammar " + path("g.gbnf"));
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("the model has no tokenizer"), std::string::npos) << outcome.err;
  EXPECT_EQ(run(call + " --dry-multiplier 1").status, 2);
  EXPECT_EQ(run(call + " --dry-multiplier 1 --dry-sequence-breaker none").status, 0);
}

TEST_F(ConstrainedCli, SamplersHaveTheirEffect) {
  const std::string call = "generate -q -p 山 -n 60 --greedy --ignore-eos --json" + demo;
  const auto tokens = [&](const std::string& options) {
    return nlohmann::json::parse(run(call + options).out)["tokens"];
  };
  const auto plain = tokens("");
  EXPECT_EQ(tokens(" --typical-p 0.5"), plain) << "--greedy still takes the largest logit";
  const std::string first = std::to_string(plain[0].get<int>());
  EXPECT_NE(tokens(" --logit-bias " + first + "-inf")[0], plain[0]);
  for (const auto& token : tokens(" --logit-bias " + first + "+1000")) EXPECT_EQ(token, plain[0]);
  const auto dry = tokens(" --logit-bias " + first + "+1000 --dry-multiplier 1e6 --dry-sequence-breaker none");
  EXPECT_NE(dry, tokens(" --logit-bias " + first + "+1000"));
}

}  // namespace
}  // namespace minimind
