#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/cli.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

class Explain : public Cli {};

TEST_F(Explain, DividesTheLogitAmongTheLayers) {
  const Outcome outcome = run("explain -q --greedy -n 3 --json -p 床前明月光" + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["explanations"].size(), 3);
  EXPECT_EQ(json["tokens"], Json::parse(run("generate -q --greedy -n 3 --json -p 床前明月光" + demo).out)["tokens"]);
  for (const Json& token : json["explanations"]) {
    double sum = token["embedding"];
    for (const Json& layer : token["layers"]) {
      sum += layer["attention"].get<double>() + layer["feed_forward"].get<double>();
      EXPECT_EQ(layer["heads"].size(), 6);
    }
    EXPECT_EQ(token["layers"].size(), 6);
    EXPECT_NEAR(sum, token["logit"], 1e-4);
    EXPECT_EQ(token["candidates"][0]["token"], token["token"]);
    EXPECT_EQ(token["layers"][5]["lens"]["token"], token["token"]);
  }
}

TEST_F(Explain, ShowsTheExpertsThatWereTaken) {
  const std::string call = "explain -q --greedy -n 2 --tokens 1,2,3 --json -m ";
  const Json json = Json::parse(run(call + load_golden("v2-moe").model_path).out);
  for (const Json& token : json["explanations"]) {
    for (const Json& layer : token["layers"]) {
      ASSERT_EQ(layer["experts"].size(), 2);
      EXPECT_NEAR(layer["experts"][0]["weight"].get<double>() + layer["experts"][1]["weight"].get<double>(), 1, 1e-5);
    }
  }
}

TEST_F(Explain, FitsOn80ColumnsInBothLanguages) {
  for (const std::string language : {"en", "zh"}) {
    const Outcome outcome = run("explain -q --seed 3 -n 4 --top 5 -p 床前明月光 --lang " + language + demo);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.out.find(language == "zh" ? "第 5 层：注意力 " : "layer 5: attention "), std::string::npos);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_in(line), 80) << line;
  }
}

}  // namespace
}  // namespace minimind
