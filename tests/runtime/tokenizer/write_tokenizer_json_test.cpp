#include "runtime/tokenizer/tokenizer_json_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer/files.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

TokenizerData after_files(const TokenizerData& data) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", tokenizer_json(data));
  folder.write("tokenizer_config.json", tokenizer_config_json(data));
  return read_tokenizer(folder.path());
}

void expect_same(TokenizerData again, TokenizerData data) {
  std::sort(again.vocab.begin(), again.vocab.end());
  std::sort(data.vocab.begin(), data.vocab.end());
  again.source = data.source;
  again.chat_template_source = data.chat_template_source;
  EXPECT_EQ(again, data);
}

TEST(WriteTokenizerJson, IsReadAsTheDataItWasWrittenFrom) {
  const TokenizerData data = read_tokenizer(own_tokenizer);
  expect_same(after_files(data), data);
  expect_golden(Tokenizer(after_files(data)), own_tokenizer + "/golden.jsonl");
}

TEST(WriteTokenizerJson, KeepsWhatMiniMindsTokenizersDoNotUse) {
  TokenizerData data = read_tokenizer(own_tokenizer);
  data.unk_token = "!";
  data.normal_form = NormalForm::nfkd;
  data.fuse_unk = data.ignore_merges = data.add_prefix_space = true;
  data.use_regex = false;
  data.bos_token.reset();
  data.pad_token = data.config_unk_token = "<|end|>";
  data.chat_template = "{{ '\"\n你' }}";
  expect_same(after_files(data), data);
}

TEST(WriteTokenizerJson, IsTheFileThatHuggingFaceWrote) {
  Json written = Json::parse(tokenizer_json(read_tokenizer(own_tokenizer)));
  Json original = Json::parse(read_whole_file(own_tokenizer + "/tokenizer.json"));
  for (Json& merge : original["model"]["merges"]) {
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  EXPECT_EQ(written, original);
}

TEST(WriteTokenizerJson, MergesThatOneStringCannotSpellAreWrittenAsPairs) {
  TokenizerData data;
  data.vocab = {{"#version", 0}, {"a", 1}, {"#versiona", 2}, {" ", 3}, {"a ", 4}};
  data.merges = {{"#version", "a"}};
  EXPECT_EQ(after_files(data).merges, data.merges);
  data.merges = {{"a", " "}};
  EXPECT_EQ(after_files(data).merges, data.merges);
}

TEST(WriteTokenizerJson, KeepsWhatIsPutAroundATextAndBothTemplates) {
  TokenizerData data = read_tokenizer(own_tokenizer);
  data.before_text = {1, 2};
  data.after_text = {2};
  data.chat_template = "C";
  data.tool_use_template = "T";
  expect_same(after_files(data), data);
  data.before_text = {};
  expect_same(after_files(data), data);
  data.tool_use_template.reset();
  data.after_text = {};
  data.before_text = {1};
  expect_same(after_files(data), data);
}

TEST(WriteTokenizerJson, SaysWhetherTheEndsOfATextAreTheUsualTokens) {
  TokenizerData data;
  data.vocab = {{"a", 5}};
  data.added_tokens = {{.id = 0, .content = "<s>", .special = true}, {.id = 1, .content = "</s>", .special = true}};
  data.bos_token = "<s>";
  data.eos_token = "</s>";
  const auto adds = [&](const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& after) {
    data.before_text = before;
    data.after_text = after;
    const Json config = Json::parse(tokenizer_config_json(data));
    return std::pair(config["add_bos_token"].get<bool>(), config["add_eos_token"].get<bool>());
  };
  EXPECT_EQ(adds({0}, {1}), std::pair(true, true));
  EXPECT_EQ(adds({1}, {0}), std::pair(false, false)) << "in the other order";
  EXPECT_EQ(adds({0, 0}, {}), std::pair(false, false));
  EXPECT_EQ(adds({5}, {77}), std::pair(false, false)) << "an id that no token has";
}

TEST(WriteTokenizerJson, NamesTheSpecialTokensThatHaveNoOtherName) {
  TokenizerData data;
  data.added_tokens = {{.id = 0, .content = "<s>", .special = true},
                       {.id = 1, .content = "<image>", .special = true},
                       {.id = 2, .content = "<think>"}};
  data.bos_token = "<s>";
  const Json config = Json::parse(tokenizer_config_json(data));
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_TRUE(config["eos_token"].is_null());
  EXPECT_EQ(config["additional_special_tokens"], Json::array({"<image>"}));
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_FALSE(config["clean_up_tokenization_spaces"].get<bool>());
}

}  // namespace
}  // namespace minimind
