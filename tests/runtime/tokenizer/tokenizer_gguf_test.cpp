#include "runtime/tokenizer/tokenizer_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"
#include "tests/support/cases.h"
#include "tests/support/facts.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/temporary_folder.h"
#include "tools/options/choose_tokenizer.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/gguf/writer.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;
using Strings = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

constexpr std::size_t own_rows = 430;  // 4 more than tests/golden_tokenizer has tokens

// A tokenizer whose token N is the byte N, with two merges and the added tokens <s> and </s>; both are among the
// model's.
TokenizerData plain_data() {
  TokenizerData data;
  data.source = "test.json";
  for (int byte = 0; byte < 256; ++byte) {
    data.vocab.emplace_back(to_byte_level(std::string{static_cast<char>(byte)}), byte);
  }
  data.vocab.insert(data.vocab.end(), {{"ab", 256}, {"abc", 257}, {"<s>", 258}, {"</s>", 259}});
  data.merges = {{"a", "b"}, {"ab", "c"}};
  data.added_tokens = {{.id = 258, .content = "<s>", .special = true}, {.id = 259, .content = "</s>", .special = true}};
  data.bos_token = "<s>";
  data.eos_token = "</s>";
  return data;
}

GgufMetadata metadata_of(const TokenizerData& data, std::size_t rows) {
  GgufMetadata metadata;
  (void)set_tokenizer(metadata, data, rows);
  return metadata;
}

TokenizerData after_gguf(const TokenizerData& data, std::size_t rows) {
  return read_tokenizer_gguf(metadata_of(data, rows), "model.gguf");
}

template <typename Data>
const Data& get(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* const value = metadata.find(key);
  if (!value) throw std::runtime_error("no " + std::string(key));
  return std::get<Data>(value->data);
}

Integers integers(const GgufMetadata& metadata, std::string_view key) {
  return get<GgufNumbers<std::int64_t>>(metadata, key).widened();
}

Strings sentences_of(const TokenizerData& data) {
  GgufMetadata metadata;
  return english(set_tokenizer(metadata, data, 300));
}

// The error of reading what `change` makes of the plain tokenizer's metadata.
std::string error_after(const std::function<void(GgufMetadata&)>& change) {
  GgufMetadata metadata = metadata_of(plain_data(), 262);
  change(metadata);
  return error_of([&] { Tokenizer(read_tokenizer_gguf(metadata, "model.gguf")); });
}

std::string write_file(const TemporaryFolder& folder, const std::string& name, const GgufMetadata& metadata) {
  OutputFile out(folder.path() + "/" + name);
  write_gguf(out, metadata, {}, 1);
  out.commit();
  return folder.path() + "/" + name;
}

TEST(TokenizerGguf, EncodesAndDecodesAsHuggingFaceTokenizers) {
  const Tokenizer tokenizer(after_gguf(read_tokenizer(own_tokenizer), own_rows));
  expect_golden(tokenizer, own_tokenizer + "/golden.jsonl");
  EXPECT_EQ(tokenizer.vocab_size(), 426u);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 0);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_EQ(tokenizer.chat_template(), "{{ messages[0].content }}");
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_FALSE(tokenizer.is_special(425));
  EXPECT_FALSE(tokenizer.has(426));
}

TEST(TokenizerGguf, MiniMindsTokenizersAreExactAndTheSameInLlamaCpp) {
  if (reference_tokenizers.empty()) GTEST_SKIP() << "MINIMIND_REFERENCE is not set";
  for (const std::string version : {"v1", "v2", "v3"}) {
    const std::string folder = reference_tokenizers + "/" + version;
    const TokenizerData data = read_tokenizer(folder);
    GgufMetadata metadata;
    EXPECT_EQ(english(set_tokenizer(metadata, data, 6400)), Strings{});
    const bool own_keys = std::any_of(metadata.entries().begin(), metadata.entries().end(),
                                      [](const auto& entry) { return entry.first.starts_with("minimind."); });
    EXPECT_FALSE(own_keys);
    const TokenizerData again = read_tokenizer_gguf(metadata, "model.gguf");
    EXPECT_EQ(again.merges, data.merges);
    EXPECT_EQ(again.chat_template, data.chat_template);
    EXPECT_EQ(again.pad_token, data.pad_token);
    EXPECT_EQ(again.config_unk_token, data.config_unk_token);
    const Tokenizer tokenizer(again);
    expect_golden(tokenizer, folder + "/golden.jsonl");
    expect_golden(tokenizer, folder + "/decode_golden.jsonl");
    EXPECT_EQ(tokenizer.bos_id(), 1);
    EXPECT_EQ(tokenizer.eos_id(), 2);
  }
}

TEST(TokenizerGguf, WritesTheKeysThatLlamaCppReads) {
  TokenizerData data = plain_data();
  data.added_tokens.push_back({.id = 260, .content = " 你"});
  data.chat_template = "{{ bos_token }}";
  data.tool_use_template = "{{ tools }}";
  const GgufMetadata metadata = metadata_of(data, 263);
  EXPECT_EQ(get<std::string>(metadata, "tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(get<std::string>(metadata, "tokenizer.ggml.pre"), "gpt-2");
  const auto& tokens = get<GgufTexts>(metadata, "tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 263u);
  EXPECT_EQ(tokens[' '], "Ġ");
  EXPECT_EQ(tokens[260], " 你");
  EXPECT_EQ(tokens[261], "[PAD261]");
  const auto types = integers(metadata, "tokenizer.ggml.token_type");
  EXPECT_EQ(Integers(types.begin() + 256, types.end()), (Integers{1, 1, 3, 3, 4, 5, 5}));
  EXPECT_EQ(metadata.find("tokenizer.ggml.token_type")->type, GgufType::i32);
  EXPECT_EQ(get<GgufTexts>(metadata, "tokenizer.ggml.merges"), (Strings{"a b", "ab c"}));
  EXPECT_EQ(get<std::uint64_t>(metadata, "tokenizer.ggml.bos_token_id"), 258u);
  EXPECT_EQ(get<std::uint64_t>(metadata, "tokenizer.ggml.eos_token_id"), 259u);
  EXPECT_EQ(get<std::uint64_t>(metadata, "tokenizer.ggml.eot_token_id"), 259u);
  EXPECT_FALSE(metadata.contains("tokenizer.ggml.padding_token_id"));
  EXPECT_FALSE(get<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(get<bool>(metadata, "tokenizer.ggml.add_eos_token"));
  EXPECT_FALSE(get<bool>(metadata, "tokenizer.ggml.add_space_prefix"));
  EXPECT_EQ(get<std::string>(metadata, "tokenizer.chat_template"), "{{ bos_token }}");
  EXPECT_EQ(get<std::string>(metadata, "tokenizer.chat_template.tool_use"), "{{ tools }}");
}

TEST(TokenizerGguf, NoTwoTokensHaveOneText) {
  TokenizerData data = plain_data();
  data.vocab.emplace_back("[PAD261]", 260);
  EXPECT_EQ(get<GgufTexts>(metadata_of(data, 262), "tokenizer.ggml.tokens").separate()[261], "[PAD261]_");
}

TEST(TokenizerGguf, OfTwoMergesOfOnePairTheLaterIsWritten) {
  TokenizerData data = plain_data();
  data.merges = {{"ab", "c"}, {"a", "b"}, {"ab", "c"}};
  EXPECT_EQ(get<GgufTexts>(metadata_of(data, 260), "tokenizer.ggml.merges"), (Strings{"a b", "ab c"}));
}

TEST(TokenizerGguf, KeepsWhatLlamaCppHasNoKeyFor) {
  TokenizerData data = plain_data();
  data.vocab.erase(data.vocab.begin() + 'y');
  data.unk_token = "x";
  data.normal_form = NormalForm::nfkc;
  data.fuse_unk = data.ignore_merges = data.add_prefix_space = true;
  data.use_regex = false;
  data.added_tokens.push_back({.id = 260, .content = "<l>", .lstrip = true, .normalized = true});
  data.added_tokens.push_back({.id = 261, .content = "<r>", .rstrip = true, .special = true});
  data.added_tokens.push_back({.id = 262, .content = "y", .single_word = true});
  data.vocab.emplace_back("<r>", 261);
  const TokenizerData again = after_gguf(data, 265);
  EXPECT_EQ(again.unk_token, "x");
  EXPECT_EQ(again.normal_form, NormalForm::nfkc);
  EXPECT_TRUE(again.fuse_unk && again.ignore_merges && again.add_prefix_space && !again.use_regex);
  EXPECT_EQ(again.added_tokens, data.added_tokens);
  auto vocab = data.vocab;
  std::sort(vocab.begin(), vocab.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(again.vocab, vocab);
  for (const std::string text : {"abcy yy  <l> <r> z", "y abc", "<l>\n<r>\n", ""}) {
    EXPECT_EQ(Tokenizer(again).encode(text), Tokenizer(data).encode(text)) << text;
  }
}

TEST(TokenizerGguf, SaysWhichTokensLlamaCppTakesIfNoneIsNamed) {
  TokenizerData data = plain_data();
  EXPECT_EQ(sentences_of(data), Strings{});
  data.eos_token.reset();
  EXPECT_EQ(sentences_of(data), Strings{"without an eos_token, llama.cpp ends texts at token 11, 'ċ'"});
  data.bos_token.reset();
  EXPECT_EQ(sentences_of(data), (Strings{"without an eos_token, llama.cpp ends texts at token 11, 'ċ'",
                                         "without a bos_token, llama.cpp uses token 11, 'ċ'"}));
}

TEST(TokenizerGguf, RejectsMoreTokensThanTheEmbeddingHasRows) {
  EXPECT_EQ(
      error_of([] { metadata_of(plain_data(), 259); }),
      "test.json: has ids up to 259, and the model's embedding has 259 rows; give the tokenizer that the model was "
      "trained with");
}

TEST(TokenizerGguf, RejectsAMergeWithASpace) {
  TokenizerData data = plain_data();
  data.vocab.insert(data.vocab.end(), {{"a b", 260}, {"a bc", 261}});
  data.merges.emplace_back("a b", "c");
  EXPECT_EQ(
      error_of([&] { metadata_of(data, 262); }),
      "test.json: model.merges[2]: found 'a b', expected a token without spaces, as a GGUF spells a merge \"a b\"");
}

TEST(TokenizerGguf, RejectsOtherTokenizersNamingThemAndTheFix) {
  const std::string way_out = "; use the model's tokenizer.json";
  EXPECT_EQ(error_after([](GgufMetadata& metadata) { metadata.set_string("tokenizer.ggml.model", "llama"); }),
            "model.gguf: tokenizer.ggml.model: found 'llama', expected 'gpt2', which is byte-level BPE: no other is "
            "supported" +
                way_out);
  for (const std::string pre : {"qwen2", "default", "smollm", "llama-bpe", ""}) {
    EXPECT_EQ(error_after([&](GgufMetadata& metadata) { metadata.set_string("tokenizer.ggml.pre", pre); }),
              "model.gguf: tokenizer.ggml.pre: found '" + pre +
                  "', expected 'gpt-2', as MiniMind's tokenizers split texts: another split gives other ids" + way_out);
  }
  for (const std::string none : {"none", "no_vocab"}) {
    EXPECT_EQ(error_after([&](GgufMetadata& metadata) { metadata.set_string("tokenizer.ggml.model", none); }),
              "model.gguf: tokenizer.ggml.model: found '" + none + "', expected a tokenizer" + way_out);
  }
  EXPECT_EQ(error_of([] { read_tokenizer_gguf({}, "model.gguf"); }),
            "model.gguf: tokenizer.ggml.model: found nothing, expected a tokenizer" + way_out);
}

TEST(TokenizerGguf, WritesAddedTokensUnderLlamaCppsKeysIfPossible) {
  TokenizerData data = plain_data();
  data.bos_token = data.added_tokens.front().content;
  data.eos_token = data.bos_token;
  const std::int32_t id = data.added_tokens.front().id;
  data.before_text = {id};
  GgufMetadata metadata = metadata_of(data, 262);
  EXPECT_TRUE(get<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(get<bool>(metadata, "tokenizer.ggml.add_eos_token"));
  EXPECT_EQ(metadata.find("minimind.tokenizer.before_text"), nullptr);
  EXPECT_EQ(read_tokenizer_gguf(metadata, "model.gguf").before_text, data.before_text);
  data.before_text = {id, 5};
  data.after_text = {id};
  metadata = metadata_of(data, 262);
  EXPECT_FALSE(get<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_TRUE(get<bool>(metadata, "tokenizer.ggml.add_eos_token"));
  const TokenizerData read = read_tokenizer_gguf(metadata, "model.gguf");
  EXPECT_EQ(read.before_text, data.before_text);
  EXPECT_EQ(read.after_text, data.after_text);
}

TEST(TokenizerGguf, AnAddedStartTokenNeedsAName) {
  const GgufMetadata whole = metadata_of(plain_data(), 262);
  GgufMetadata metadata;
  for (const auto& [key, value] : whole.entries()) {
    if (key != "tokenizer.ggml.bos_token_id") metadata.set(key, value);
  }
  metadata.set_bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_EQ(
      error_of([&] { read_tokenizer_gguf(metadata, "model.gguf"); }),
      "model.gguf: tokenizer.ggml.add_bos_token: found true, expected false, because the file names no such token; use "
      "the model's tokenizer.json");
}

// Metadata with the keys of the plain tokenizer except `left_out`.
std::string error_without(const std::string& left_out) {
  GgufMetadata metadata;
  const GgufMetadata whole = metadata_of(plain_data(), 262);
  for (const auto& [key, value] : whole.entries()) {
    if (key != left_out) metadata.set(key, value);
  }
  return error_of([&] { read_tokenizer_gguf(metadata, "model.gguf"); });
}

TEST(TokenizerGguf, RejectsMissingKeys) {
  EXPECT_TRUE(
      error_without("tokenizer.ggml.pre").starts_with("model.gguf: tokenizer.ggml.pre: found nothing, expected"));
  EXPECT_EQ(error_without("tokenizer.ggml.tokens"),
            "model.gguf: tokenizer.ggml.tokens: found nothing, expected an array of strings; use the model's "
            "tokenizer.json");
  EXPECT_EQ(
      error_without("tokenizer.ggml.token_type"),
      "model.gguf: tokenizer.ggml.token_type: found 0 types, expected one for each of the 262 tokens, which marks "
      "the special tokens; use the model's tokenizer.json");
  EXPECT_TRUE(error_without("tokenizer.ggml.merges").starts_with("model.gguf: tokenizer.ggml.merges: found nothing,"));
  for (const std::string optional : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token",
                                     "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.eot_token_id"}) {
    EXPECT_EQ(error_without(optional), "");
  }
}

TEST(TokenizerGguf, RejectsWrongTypesLengthsAndIds) {
  const auto error_with = [](const std::string& key, const GgufValue& value) {
    const std::string error = error_after([&](GgufMetadata& metadata) { metadata.set(key, value); });
    EXPECT_TRUE(error.starts_with("model.gguf: " + key)) << error;
    return error.substr(std::min(error.size(), ("model.gguf: " + key).size()));
  };
  const auto error_with_token = [](std::size_t id, const std::string& text) {
    return error_after([&](GgufMetadata& metadata) {
      auto tokens = get<GgufTexts>(metadata, "tokenizer.ggml.tokens").separate();
      tokens[id] = text;
      metadata.set_strings("tokenizer.ggml.tokens", tokens);
    });
  };
  const std::string corrupt = "; the file is corrupt; copy or convert it again";
  const GgufValue text{GgufType::string, std::string("x")};
  EXPECT_EQ(error_with("tokenizer.ggml.tokens", text),
            ": found a value of type string, expected an array of strings" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.tokens", {GgufType::string, Strings{}}),
            ": found 0 tokens, expected 1 to 1048576" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.merges", {GgufType::i32, Integers{1, 2}}),
            ": found an array of 2 i32, expected an array of strings" + corrupt);
  for (const std::string merge : {"a b c", "ab", "", " a", "a ", "a z", "zz b"}) {
    EXPECT_EQ(error_with("tokenizer.ggml.merges", {GgufType::string, Strings{"a b", merge}}),
              "[1]: found '" + merge + "', expected two tokens, \"a b\", that together are a token too" + corrupt);
  }
  EXPECT_EQ(error_with("tokenizer.ggml.token_type", {GgufType::i32, Integers(261, 1)}),
            ": found 261 types, expected one for each of the 262 tokens, which marks the special tokens" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.token_type", {GgufType::f32, std::vector<double>(262, 1.0)}),
            ": found an array of 262 f32, expected an array of whole numbers" + corrupt);
  for (const int type : {-1, 0, 6}) {
    EXPECT_TRUE(error_with("tokenizer.ggml.token_type", {GgufType::i32, Integers(262, type)})
                    .starts_with("[0]: found " + std::to_string(type) + ", expected 1 (normal), "));
  }
  EXPECT_EQ(error_with("tokenizer.ggml.token_type", {GgufType::i32, std::int64_t{1}}),
            ": found a value of type i32, expected an array of whole numbers" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.bos_token_id", {GgufType::i32, Integers{1}}),
            ": found an array of 1 i32, expected a token id" + corrupt);
  for (const std::int64_t id : {-1, 262}) {
    EXPECT_EQ(error_with("minimind.tokenizer.before_text", {GgufType::i32, Integers{id}}),
              ": found " + std::to_string(id) + ", expected ids below 262" + corrupt);
  }
  EXPECT_EQ(error_with("minimind.tokenizer.normal_form", text),
            ": found 'x', expected NFC, NFD, NFKC or NFKD" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.bos_token_id", {GgufType::u32, std::uint64_t{262}}),
            ": found 262, expected an id below 262" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.eos_token_id", {GgufType::u32, std::uint64_t{261}}),
            ": found 261, expected a token that is not unused" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.padding_token_id", {GgufType::i32, std::int64_t{-1}}),
            ": found -1, expected a token id" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.bos_token_id", text),
            ": found a value of type string, expected a token id" + corrupt);
  EXPECT_EQ(error_with("tokenizer.ggml.add_eos_token", text),
            ": found a value of type string, expected true or false" + corrupt);
  EXPECT_EQ(error_with("tokenizer.chat_template", {GgufType::string, std::string("\xFF")}),
            ": found bytes that are not UTF-8, expected a string" + corrupt);
  for (const std::int64_t id : {-1, 0, 261, 262}) {
    EXPECT_EQ(error_with("minimind.tokenizer.lstrip", {GgufType::i32, Integers{id}}),
              ": found " + std::to_string(id) + ", expected ids of tokens of type 2, 3 or 4" + corrupt);
  }
  EXPECT_EQ(
      error_with_token(1, "a"),
      "model.gguf: tokenizer.ggml.tokens[97]: found 'a', which an earlier token is, expected another string" + corrupt);
  EXPECT_EQ(error_with_token(7, "\xFF"),
            "model.gguf: tokenizer.ggml.tokens[7]: found bytes that are not UTF-8, expected a string" + corrupt);
  EXPECT_TRUE(error_after([](GgufMetadata& metadata) {
                metadata.set_i32s("minimind.tokenizer.appended", {258});
              }).starts_with("model.gguf: added_tokens[0], '<s>': found id 258, expected 259"));
}

// llama.cpp's converter knows only types; it writes add_space_prefix from tokenizer_config.json, which for MiniMind's
// v1 says true while tokenizer.json, which counts, says false.
TEST(TokenizerGguf, AFileOfLlamaCppsConverterIsReadAsItsTypesSay) {
  GgufMetadata metadata = metadata_of(plain_data(), 262);
  metadata.set_bool("tokenizer.ggml.add_space_prefix", true);
  auto types = integers(metadata, "tokenizer.ggml.token_type");
  types[258] = 2;  // unknown
  metadata.set("tokenizer.ggml.token_type", {GgufType::i32, types});
  const Tokenizer tokenizer(read_tokenizer_gguf(metadata, "model.gguf"));
  EXPECT_EQ(tokenizer.encode("<s>abca</s>"), (Ids{258, 257, 'a', 259}));
  EXPECT_TRUE(tokenizer.is_special(258));
  EXPECT_EQ(tokenizer.vocab_size(), 260u);
}

TEST(TokenizerGguf, IsLoadedFromTheFileByItsContent) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder, "renamed.bin", metadata_of(read_tokenizer(own_tokenizer), own_rows));
  expect_golden(load_tokenizer(path), own_tokenizer + "/golden.jsonl");
  EXPECT_EQ(find_tokenizer(path), path);
  EXPECT_EQ(require_tokenizer("", path).vocab_size(), load_tokenizer(own_tokenizer).vocab_size());
  EXPECT_TRUE(optional_tokenizer(path, "no such model").has_value());
}

TEST(TokenizerGguf, CorruptFilesAreRejectedOrLoadButNeverCrash) {
  const TemporaryFolder folder;
  TokenizerData data = plain_data();
  data.added_tokens[0].lstrip = true;
  const std::string whole = read_whole_file(write_file(folder, "model.gguf", metadata_of(data, 262)));
  std::mt19937 random(5);
  unsigned refused = 0;
  for (unsigned round = 0; round < cases(500); ++round) {
    std::string corrupt = whole;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      corrupt[random() % corrupt.size()] = static_cast<char>(random() % 3 == 0 ? 255 : random() % 256);
    }
    const std::string path = folder.write("model.gguf", corrupt);
    const std::string error = error_of([&] { load_tokenizer(path).encode("abc <s> xyz"); });
    EXPECT_TRUE(error.empty() || error.starts_with(path) || !corrupt.starts_with("GGUF")) << error;
    refused += error.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, cases(50));
}

TEST(TokenizerGguf, AGgufWithoutATokenizerUsesTheOneNextToIt) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.set_string("tokenizer.ggml.model", "no_vocab");
  const std::string none = write_file(folder, "none.gguf", metadata);
  const std::string absent = write_file(folder, "absent.gguf", {});
  for (const std::string& path : {none, absent}) {
    EXPECT_EQ(find_tokenizer(path), std::nullopt);
    EXPECT_EQ(error_of([&] { require_tokenizer("", path); }),
              path +
                  ": has no tokenizer inside, expected a tokenizer.json in its folder, or in model/ or "
                  "model/minimind_tokenizer/ there or one folder up; name one with --tokenizer");
  }
  const std::string beside = folder.write("tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(none), beside);
  EXPECT_EQ(find_tokenizer(absent), beside);
  EXPECT_EQ(error_of([&] { load_tokenizer(absent); }),
            absent + ": tokenizer.ggml.model: found nothing, expected a tokenizer; use the model's tokenizer.json");
}

TEST(TokenizerGguf, RejectsAnUnsupportedKindOnlyIfItIsNeeded) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", "{}");
  GgufMetadata metadata;
  metadata.set_string("tokenizer.ggml.model", "llama");
  const std::string path = write_file(folder, "model.gguf", metadata);
  EXPECT_EQ(find_tokenizer(path), path);
  EXPECT_NE(error_of([&] { require_tokenizer("", path); }).find("found 'llama', expected 'gpt2'"), std::string::npos);
  EXPECT_FALSE(optional_tokenizer("", path).has_value());
  EXPECT_TRUE(optional_tokenizer(own_tokenizer, path).has_value());
}

}  // namespace
}  // namespace minimind
