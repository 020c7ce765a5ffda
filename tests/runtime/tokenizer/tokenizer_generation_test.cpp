#include "runtime/tokenizer/tokenizer_generation.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/cli.h"

namespace minimind {
namespace {

using Tokens = std::vector<std::pair<std::int32_t, std::string>>;

const Tokens first_special{{0, "<unk>"}, {1, "<s>"}, {2, "</s>"}};
const Tokens later_special{{0, "<|endoftext|>"}, {1, "<|im_start|>"}, {2, "<|im_end|>"}};
// Tokens of MiniMind's own vocabularies.
const Tokens early{{1500, "Ġsignific"}, {2000, "æĽ´å¥½"},  {3500, "æĢ§çļĦ"}, {4500, "Ġfunction"},
                   {5000, "å¼ķèµ·"},    {5500, "Ġseason"}, {6000, "oster"},  {6399, "Ġnetworks"}};
const Tokens newest{{1500, "Ġmost"},  {2000, "ark"},    {3500, "Ġdevelopment"}, {4500, "Ġenh"},
                    {5000, "å¤ĸéĥ¨"}, {5500, "èĶ¬èıľ"}, {6000, "æīĭæ®µ"},       {6399, "Ġstyle"}};

// Of `size` tokens, those given at their places.
Tokenizer tokenizer_with(const Tokens& special, const Tokens& vocabulary, std::int32_t size = 6400) {
  std::vector<std::string> texts;
  for (std::int32_t id = 0; id < size; ++id) texts.push_back("t" + std::to_string(id));
  for (const auto& [id, text] : vocabulary) texts.at(static_cast<std::size_t>(id)) = text;
  for (const auto& [id, text] : special) texts.at(static_cast<std::size_t>(id)) = text;
  TokenizerData data;
  data.source = "test";
  for (std::int32_t id = 0; id < size; ++id) data.vocab.emplace_back(texts[static_cast<std::size_t>(id)], id);
  for (const auto& [id, text] : special) data.added_tokens.push_back({.id = id, .content = text, .special = true});
  return Tokenizer(data);
}

std::string misfit(const Tokenizer& tokenizer, Family family, std::size_t vocab_size = 6400) {
  Config config;
  config.family = family;
  config.vocab_size = vocab_size;
  const auto misfit = tokenizer_misfit(tokenizer, config);
  return misfit ? misfit->english() : "";
}

TEST(TokenizerGeneration, AcceptsTheTokenizerOfEachModel) {
  const Tokenizer v1 = tokenizer_with(first_special, early), v2 = tokenizer_with(later_special, early),
                  v3 = tokenizer_with(later_special, newest);
  for (const Family family : {Family::v1, Family::v2_early, Family::llama}) EXPECT_EQ(misfit(v1, family), "");
  for (const Family family : {Family::v2, Family::llama}) EXPECT_EQ(misfit(v2, family), "");
  for (const Family family : {Family::v3, Family::qwen3, Family::qwen3_moe}) EXPECT_EQ(misfit(v3, family), "");
  for (const Family family : {Family::v2, Family::v3, Family::qwen3}) {
    EXPECT_NE(misfit(v1, family).find("is that of MiniMind v1 and v2-early, expected that of v"), std::string::npos);
  }
  for (const Family family : {Family::v1, Family::v2_early, Family::v3, Family::qwen3_moe}) {
    EXPECT_NE(misfit(v2, family).find("is that of MiniMind v2, expected that of v"), std::string::npos);
  }
  for (const Family family : {Family::v1, Family::v2_early, Family::v2, Family::llama}) {
    EXPECT_NE(misfit(v3, family).find("is that of MiniMind v3, expected that of v"), std::string::npos);
  }
}

TEST(TokenizerGeneration, AVocabularyOfOnesOwnMayBeAnyWithItsSpecialTokens) {
  const Tokenizer first = tokenizer_with(first_special, {}), later = tokenizer_with(later_special, {}),
                  other = tokenizer_with({{0, "<pad>"}, {1, "<bos>"}, {2, "<eos>"}}, {});
  for (const Family family : {Family::v1, Family::v2_early, Family::llama, Family::qwen3}) {
    EXPECT_EQ(misfit(first, family), "");
  }
  for (const Family family : {Family::v2, Family::v3, Family::llama, Family::qwen3})
    EXPECT_EQ(misfit(later, family), "");
  for (const Family family : {Family::v1, Family::v2, Family::v3}) EXPECT_EQ(misfit(other, family), "");
  for (const Family family : {Family::v2, Family::v3}) {
    EXPECT_NE(misfit(first, family).find("<unk> <s> </s>, expected <|endoftext|>"), std::string::npos);
  }
  EXPECT_NE(misfit(later, Family::v1).find("<|im_end|>, expected <unk> <s> </s>"), std::string::npos);
}

TEST(TokenizerGeneration, ReportsAnotherSize) {
  const Tokenizer tokenizer = tokenizer_with(later_special, {}, 300);
  EXPECT_EQ(misfit(tokenizer, Family::v3, 300), "");
  EXPECT_NE(misfit(tokenizer, Family::v3, 400).find("has 300 tokens, expected the 400"), std::string::npos);
  EXPECT_NE(misfit(tokenizer, Family::qwen3, 200).find("has 300 tokens, expected the 200"), std::string::npos);
  EXPECT_EQ(misfit(tokenizer, Family::qwen3, 320), "") << "exports may round up";
}

class OtherTokenizer : public Cli {};

TEST_F(OtherTokenizer, IsWarnedOfByEveryCommandThatRunsOrWritesTheModel) {
  std::string text = read_whole_file(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json");
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"<|endoftext|>", "<unk>"},
                                 {"<|im_start|>", "<s>"},
                                 {"<|im_end|>", "</s>"}}) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;) text.replace(at, from.size(), to);
  }
  std::ofstream(path("tokenizer.json")) << text;
  const std::string options = " --tokenizer " + path("tokenizer.json");
  const std::string warning = path("tokenizer.json") + ": the tokenizer's special tokens are <unk> <s> </s>";
  for (const std::string& call :
       {"generate -p 春 -n 1 --greedy" + demo, "chat -p 春 -n 1 --greedy" + demo, "perplexity -p 春眠不觉晓" + demo,
        "inspect" + demo, "convert " MINIMIND_SOURCE_DIR "/weights/demo/model.pth " + path("x.gguf")}) {
    const Outcome outcome = run(call + options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(warning), std::string::npos) << call << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("--tokenizer"), std::string::npos) << call << ": " << outcome.err;
  }
  EXPECT_NE(run("inspect" + demo + options).out.find("but the tokenizer's special tokens"), std::string::npos);
  EXPECT_EQ(run("generate -q -p 春 -n 1 --greedy" + demo + options).err, "");
  EXPECT_EQ(run("generate -p 春 -n 1 --greedy" + demo).err.find("nonsense"), std::string::npos);
}

}  // namespace
}  // namespace minimind
