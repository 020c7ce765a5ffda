#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/constraint/grammar_constraint.h"
#include "runtime/engine/load_model.h"
#include "runtime/generate/generate.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/runtime/constraint/random_schema.h"
#include "tests/support/cases.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

// The bundled model, which writes poems regardless of the prompt.
class ConstrainedGenerate : public testing::Test {
 protected:
  ConstrainedGenerate()
      : tokenizer_(load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo")),
        model_(load_model(open_checkpoint(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", {}), std::nullopt, 1)),
        forward_(model_, kernels::choose(), 1, 16, capacity) {}

  static GenerateOptions options(std::size_t max_tokens, Grammar grammar) {
    GenerateOptions options;
    options.max_tokens = max_tokens;
    options.constraint = constrain_to(std::make_shared<const Grammar>(std::move(grammar)));
    return options;
  }

  Generated run(GenerateOptions options, bool with_tokenizer = true) {
    Context context(model_.config, capacity);
    if (options.end_tokens.empty()) options.end_tokens = {*tokenizer_.eos_id()};
    const std::atomic<bool> interrupted = false;
    return generate(
        forward_, context, with_tokenizer ? &tokenizer_ : nullptr, tokenizer_.encode("山"), options,
        [](std::string_view) {}, interrupted);
  }

  static constexpr std::size_t capacity = 600;
  Tokenizer tokenizer_;
  Model model_;
  Forward forward_;
};

TEST_F(ConstrainedGenerate, RandomSchemasGiveValidJson) {
  for (unsigned seed = 0; seed < cases(200, 16); ++seed) {
    const Json schema = RandomSchema(seed).make();
    GenerateOptions with_schema = options(250, compile_json_schema(schema, "random").grammar);
    with_schema.sampling.seed = seed;
    // The hotter, the farther from what the model would write.
    with_schema.sampling.temperature = seed % 3 == 0 ? 0.85 : seed % 3 == 1 ? 3 : 100;
    const Generated result = run(with_schema);
    EXPECT_TRUE(result.conforms) << schema;
    const Json value = Json::parse(result.text, nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << schema << "\n" << result.text;
    EXPECT_TRUE(SchemaValidator(schema).valid(value, schema)) << schema << "\n" << result.text;
  }
}

TEST_F(ConstrainedGenerate, EndsIfNothingCanFollow) {
  const Generated result = run(options(100, parse_grammar("root ::= \"春风\" [一-龥] \"。\"", "g")));
  EXPECT_EQ(result.text.substr(0, 6), "春风");
  EXPECT_TRUE(result.text.ends_with("。"));
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_TRUE(result.conforms);
  EXPECT_EQ(run(options(100, parse_grammar("root ::= \"\"", "g"))).tokens.size(), 0u);
}

TEST_F(ConstrainedGenerate, EndTokensComeOnlyIfTheGrammarMayEnd) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions lines = options(400, parse_grammar("root ::= ([一-龥]{5} [，。]){4}+", "g"));
    lines.sampling.seed = seed;
    lines.sampling.logit_bias = {{*tokenizer_.eos_id(), 100}};
    const Generated result = run(lines);
    EXPECT_EQ(result.tokens.back(), *tokenizer_.eos_id());
    EXPECT_EQ(result.text.size(), 4u * (5 + 1) * 3) << "as soon as it may: " << result.text;
    EXPECT_TRUE(result.conforms);
  }
}

TEST_F(ConstrainedGenerate, ComesToItsEndWithinTheLimitAndSaysWhenThatIsTooLow) {
  const Grammar grammar = parse_grammar("root ::= \"「\" [^」]* \"」\"", "g");
  for (const std::size_t limit : {6u, 7u, 8u, 40u}) {
    const Generated result = run(options(limit, grammar));
    EXPECT_TRUE(result.conforms) << limit;
    EXPECT_LE(result.tokens.size(), limit);
    EXPECT_TRUE(result.text.ends_with("」")) << result.text;
  }
  const Generated cut = run(options(1, grammar));
  EXPECT_FALSE(cut.conforms);
  EXPECT_EQ(cut.finish_reason, FinishReason::length);
  EXPECT_FALSE(run(options(0, grammar)).conforms);
}

TEST_F(ConstrainedGenerate, AStopStringCutsAndSaysSo) {
  GenerateOptions stopped = options(100, parse_grammar("root ::= [一-龥]{5} \"，\" [一-龥]{5} \"。\"", "g"));
  stopped.stop = {"，"};
  const Generated result = run(stopped);
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_FALSE(result.conforms);
}

TEST_F(ConstrainedGenerate, AGrammarThatAllowsWhatComesAnywayChangesNothing) {
  GenerateOptions with = options(60, parse_grammar("root ::= .*", "g"));
  with.sampling.temperature = 0;
  GenerateOptions without = with;
  without.constraint = nullptr;
  EXPECT_EQ(run(with).tokens, run(without).tokens);
}

TEST_F(ConstrainedGenerate, AGrammarRequiresATokenizer) {
  const GenerateOptions any = options(5, parse_grammar("root ::= .*", "g"));
  EXPECT_THROW(run(any, false), UsageError);
}

}  // namespace
}  // namespace minimind
