#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/grammar/json_schema.h"
#include "runtime/grammar/state.h"

namespace minimind {
namespace {

// What Pydantic and Zod write is accepted whole, and judged as Python's jsonschema does (golden_schemas/write.py).
TEST(GoldenSchemas, AreJudgedAsJsonschemaJudges) {
  std::ifstream file(MINIMIND_SOURCE_DIR "/tests/golden_schemas/cases.jsonl");
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto golden = nlohmann::ordered_json::parse(line);
    const std::string name = golden["name"];
    for (const bool closed : {false, true}) {
      JsonSchemaOptions options;
      options.closed = closed;
      GrammarState state(std::make_shared<const Grammar>(compile_json_schema(golden["schema"], name, options).grammar));
      const auto accepts = [&](const std::string& text) {
        state.restart();
        return state.advance(text) && state.may_end();
      };
      for (const std::string text : golden["invalid"]) EXPECT_FALSE(accepts(text)) << name << "\n" << text;
      if (closed) continue;
      for (const std::string text : golden["valid"]) EXPECT_TRUE(accepts(text)) << name << "\n" << text;
    }
  }
  EXPECT_GT(cases, 50u);
}

}  // namespace
}  // namespace minimind
