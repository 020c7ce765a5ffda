#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// Texts as Python's jsonschema judges them; see golden_schemas/README.md.
class GoldenSchemas : public testing::Test {
 protected:
  // Judges each line of a file. No invalid text may be accepted, open or closed.
  void judge(const std::string& file_name) {
    std::ifstream file(MINIMIND_SOURCE_DIR "/tests/golden_schemas/" + file_name);
    for (std::string line; std::getline(file, line); ++cases_) {
      const auto golden = nlohmann::ordered_json::parse(line);
      for (const bool closed : {false, true}) {
        try {
          judge(golden, closed);
        } catch (const Error& error) {
          // A closed text is of the types that the schema has keywords for, which may have no value.
          const std::string message = error.what();
          const bool none = message.find("no value is valid") != std::string::npos;
          if (!golden["valid"].empty() && !(closed && none)) refused_.push_back(message);
        }
      }
    }
  }

  void judge(const nlohmann::ordered_json& golden, bool closed) {
    const std::string name = golden["name"];
    JsonSchemaOptions options;
    options.closed = closed;
    options.any_spelling = !closed;
    GrammarState state(std::make_shared<const Grammar>(compile_json_schema(golden["schema"], name, options).grammar));
    const auto accepts = [&](const std::string& text) {
      state.restart();
      return state.advance(text) && state.may_end();
    };
    for (const std::string text : golden["invalid"]) EXPECT_FALSE(accepts(text)) << name << "\n" << text;
    for (const std::string text : golden["valid"]) {
      if (!closed && !accepts(text)) rejected_.push_back(name + ": " + text + "\n" + golden["schema"].dump());
    }
  }

  std::size_t cases_ = 0;
  std::vector<std::string> refused_, rejected_;
};

TEST_F(GoldenSchemas, OfPydanticAndZodAreJudgedAsJsonschemaJudges) {
  judge("cases.jsonl");
  EXPECT_GT(cases_, 50u);
  EXPECT_EQ(refused_, std::vector<std::string>());
  EXPECT_EQ(rejected_, std::vector<std::string>());
}

TEST_F(GoldenSchemas, OfEachKeywordAreJudgedAsJsonschemaJudges) {
  judge("suite.jsonl");
  EXPECT_GT(cases_, 1500u);
  EXPECT_EQ(refused_, std::vector<std::string>());
  EXPECT_EQ(rejected_, std::vector<std::string>());
}

// False rejects are those that json_schema.h and README.md of the grammar document.
TEST_F(GoldenSchemas, OfEachPairOfKeywordsAreJudgedAsJsonschemaJudges) {
  judge("random.jsonl");
  EXPECT_GT(cases_, 400u);
  for (const std::string& refused : refused_) {
    EXPECT_NE(refused.find("contains is not supported together with unevaluatedItems"), std::string::npos) << refused;
  }
  // uniqueItems within `if`: arrays with repeated items are rejected.
  ASSERT_EQ(rejected_.size(), 2u);
  EXPECT_TRUE(rejected_[0].starts_with("437 size if: [null, 1, null, 1.0]")) << rejected_[0];
  EXPECT_TRUE(rejected_[1].starts_with("491 if unevaluatedProperties: [-2, false,")) << rejected_[1];
}

}  // namespace
}  // namespace minimind
