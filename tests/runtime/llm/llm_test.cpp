#include "runtime/llm/llm.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/tokenizer/files.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

// The demo, with its tokenizer and chat template.
LLM poet() {
  const std::string folder = MINIMIND_SOURCE_DIR "/weights/demo";
  HugePageArena memory;
  LLM llm = load_llm(open_checkpoint(folder + "/model.pth", {}), {.threads = 1}, memory);
  const TokenizerData data = read_tokenizer(folder + "/tokenizer.json");
  llm.read_text_parts(data, Tokenizer(data), "");
  return llm;
}

TEST(Llm, FillsTheOptionsOfATextFromItsParameters) {
  const LLM llm = poet();
  GenerationParameters parameters;
  parameters.max_tokens = 7;
  parameters.stop = {"x"};
  parameters.seed = 5;
  parameters.sampling.top_k = 3;
  const GenerateOptions options = llm.generate_options(parameters, false);
  EXPECT_EQ(options.max_tokens, 7u);
  EXPECT_EQ(options.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(options.sampling.seed, 5u);
  EXPECT_EQ(options.sampling.top_k, 3u);
  EXPECT_EQ(options.end_tokens, llm.end_tokens());
  EXPECT_FALSE(options.end_tokens.empty());
  EXPECT_TRUE(options.text_tokens.empty());
  EXPECT_FALSE(options.constraint);
}

TEST(Llm, AnAnswerHasTheTagsOfThoughtsAndCalls) {
  const LLM llm = poet();
  EXPECT_EQ(llm.generate_options({}, true).text_tokens, llm.tag_tokens);
  EXPECT_FALSE(llm.tag_tokens.empty());
}

TEST(Llm, ItsFactsAreWhatAPersonShouldKnow) {
  LLM llm = poet();
  EXPECT_TRUE(llm.facts().empty());
  llm.positions = llm.config.max_position_embeddings;
  EXPECT_TRUE(llm.facts().empty()) << "all positions of the model";
  ++llm.positions;
  TokenizerData other = read_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json");
  other.source = "other";
  other.truncates = true;
  other.vocab.resize(100);
  other.merges.clear();
  std::erase_if(other.added_tokens, [](const AddedToken& token) { return token.id >= 100; });
  llm.read_text_parts(other, Tokenizer(other), "");
  llm.model->type_fallbacks = {Fact("kept a matrix")};
  std::vector<std::string> facts;
  for (const Fact& fact : llm.facts()) facts.push_back(fact.english());
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_EQ(facts[0], "kept a matrix");
  EXPECT_EQ(facts[1], "a context of 32769 positions exceeds the model's 32768");
  EXPECT_TRUE(facts[2].starts_with("other: ") && facts[2].ends_with("name the model's own (--tokenizer)")) << facts[2];
  EXPECT_TRUE(facts[3].starts_with("other: truncation is not applied")) << facts[3];
}

TEST(Llm, ParsesTheNamesOfItsSettings) {
  EXPECT_EQ(parse_kv_type("q8_0"), KvType::q8_0);
  EXPECT_EQ(parse_compute("bf16"), Compute::bf16);
  EXPECT_TRUE(is_yarn("yarn"));
  EXPECT_FALSE(is_yarn("none"));
  EXPECT_EQ(error_of([] { parse_kv_type("q4"); }), "kv_type is 'q4', expected f32, f16 or q8_0");
  EXPECT_EQ(error_of([] { parse_compute(""); }), "compute is '', expected f32 or bf16");
  EXPECT_EQ(error_of([] { is_yarn("ntk"); }), "rope_scaling is 'ntk', expected none or yarn");
}

TEST(Llm, NoTokenEndsATextIfThatIsAskedFor) {
  EXPECT_TRUE(poet().generate_options({.ignore_eos = true}, false).end_tokens.empty());
}

TEST(Llm, ATextOfAGrammarIsConstrainedToIt) {
  const LLM llm = poet();
  const auto grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"a\"", "test"));
  const GenerateOptions options = llm.generate_options({}, false, grammar);
  ASSERT_TRUE(options.constraint);
  const std::vector<std::int32_t> ends = llm.end_tokens();
  const auto constraint = options.constraint({*llm.tokenizer, llm.config.vocab_size, ends, 4});
  EXPECT_TRUE(constraint->conforms("a"));
  EXPECT_FALSE(constraint->conforms("b"));
}

}  // namespace
}  // namespace minimind
