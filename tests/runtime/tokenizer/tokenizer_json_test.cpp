#include "runtime/tokenizer/tokenizer_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/cases.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

// A separate folder for each test, removed at the end.
class TokenizerJson : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("minimind_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ifstream(own_tokenizer + "/tokenizer.json") >> json_;
  }

  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // The error of loading `text` as tokenizer.json, without the path at its start.
  std::string error_of(const std::string& text, const std::string& named_file = "tokenizer.json") const {
    write("tokenizer.json", text);
    try {
      load_tokenizer(folder_.string());
    } catch (const Error& error) {
      const std::string message = error.what();
      const std::string path = (folder_ / named_file).string() + ": ";
      EXPECT_TRUE(message.starts_with(path)) << message;
      return message.substr(std::min(message.size(), path.size()));
    }
    return "no error";
  }

  std::string error_after(const std::function<void(Json&)>& change) const {
    Json changed = json_;
    change(changed);
    return error_of(changed.dump());
  }

  std::string error_with(const std::string& pointer, const Json& value) const {
    return error_after([&](Json& json) { json[Json::json_pointer(pointer)] = value; });
  }

  fs::path folder_;
  Json json_;
};

TEST_F(TokenizerJson, ReadsAFileByPathAndMergesWrittenAsStrings) {
  Json with_strings = json_;
  Json heading = Json::array({"#version: 0.2"});
  for (const Json& merge : json_["model"]["merges"]) {
    heading.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  with_strings["model"]["merges"] = heading;
  write("other.json", with_strings.dump());
  const TokenizerData data = read_tokenizer_json((folder_ / "other.json").string());
  EXPECT_EQ(data.merges, read_tokenizer_json(own_tokenizer).merges);
  EXPECT_EQ(data.merges.size(), json_["model"]["merges"].size());
  EXPECT_EQ(data.chat_template, std::nullopt);
}

TEST_F(TokenizerJson, ASequenceOfByteLevelIsByteLevel) {
  const TokenizerData plain = read_tokenizer_json(own_tokenizer);
  Json json = json_;
  json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {json_["pre_tokenizer"]}}};
  json["decoder"] = {{"type", "Sequence"}, {"decoders", {json_["decoder"]}}};
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  write("sequence.json", json.dump());
  const TokenizerData read = read_tokenizer_json((folder_ / "sequence.json").string());
  EXPECT_EQ(std::map(read.vocab.begin(), read.vocab.end()), std::map(plain.vocab.begin(), plain.vocab.end()));
  EXPECT_EQ(read.add_prefix_space, plain.add_prefix_space);
  EXPECT_EQ(read.use_regex, plain.use_regex);
  const Json two = {json_["pre_tokenizer"], json_["pre_tokenizer"]};
  EXPECT_TRUE(
      error_with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", two}})
          .starts_with("pre_tokenizer is an object of type 'Sequence', expected an object of type 'ByteLevel'"));
  EXPECT_TRUE(error_with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}})
                  .starts_with("normalizer is an object of type 'Sequence', expected null, NFC"));
  json["pre_tokenizer"]["pretokenizers"][0]["lower"] = true;
  EXPECT_TRUE(error_of(json.dump()).starts_with("pre_tokenizer.pretokenizers[0].lower is true,"));
}

TEST_F(TokenizerJson, TextIsBroughtIntoANormalForm) {
  const Tokenizer plain(read_tokenizer_json(own_tokenizer));
  const auto with = [&](const Json& normalizer) {
    Json json = json_;
    json["normalizer"] = normalizer;
    write("normal.json", json.dump());
    return Tokenizer(read_tokenizer_json((folder_ / "normal.json").string()));
  };
  // Marks in another order, Hangul, a ligature and a wide letter, with a token of the file in between.
  const std::string text = "e\u0301 a\u0307\u0323 \u1112\u1161\u11ab \u212b<|im_start|>\ufb01 \uff21";
  const std::string nfc = "\u00e9 \u1ea1\u0307 \ud55c \u00c5<|im_start|>\ufb01 \uff21";
  const std::string nfd = "e\u0301 a\u0323\u0307 \u1112\u1161\u11ab A\u030a<|im_start|>\ufb01 \uff21";
  const std::string nfkc = "\u00e9 \u1ea1\u0307 \ud55c \u00c5<|im_start|>fi A";
  const std::string nfkd = "e\u0301 a\u0323\u0307 \u1112\u1161\u11ab A\u030a<|im_start|>fi A";
  EXPECT_EQ(with({{"type", "NFC"}}).encode(text), plain.encode(nfc));
  EXPECT_EQ(with({{"type", "NFD"}}).encode(text), plain.encode(nfd));
  EXPECT_EQ(with({{"type", "NFKC"}}).encode(text), plain.encode(nfkc));
  EXPECT_EQ(with({{"type", "NFKD"}}).encode(text), plain.encode(nfkd));
  EXPECT_EQ(with({{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}}).encode(text), plain.encode(nfkc));
  TextMarks marks;
  marks.add(1, text.size());
  EXPECT_EQ(with({{"type", "NFC"}}).encode(text, marks), plain.encode("e\u0301" + nfc.substr(2), [&] {
    TextMarks all;
    all.add(1, 1 + nfc.size());
    return all;
  }()));
}

TEST_F(TokenizerJson, NamesWhatItDoesNotDo) {
  EXPECT_EQ(
      error_with("/normalizer", {{"type", "Lowercase"}}),
      "normalizer is an object of type 'Lowercase', expected null, NFC, NFD, NFKC, NFKD or a Sequence of one of these");
  EXPECT_EQ(error_with("/pre_tokenizer", {{"type", "Metaspace"}}),
            "pre_tokenizer is an object of type 'Metaspace', expected an object of type 'ByteLevel': no other is "
            "supported");
  EXPECT_TRUE(error_with("/pre_tokenizer", nullptr).starts_with("pre_tokenizer is null,"));
  EXPECT_TRUE(error_with("/decoder", nullptr).starts_with("decoder is null,"));
  EXPECT_EQ(error_with("/post_processor", {{"type", "Whatever"}}),
            "post_processor.type is 'Whatever', expected ByteLevel, TemplateProcessing, BertProcessing, "
            "RobertaProcessing or Sequence");
  EXPECT_TRUE(error_with("/post_processor", "ByteLevel").starts_with("post_processor is 'ByteLevel',"));
  EXPECT_TRUE(error_with("/version", "2.0").starts_with("version is '2.0', expected \"1.0\""));
  EXPECT_TRUE(error_with("/model/type", "Unigram").starts_with("model.type is 'Unigram', expected BPE"));
  EXPECT_TRUE(error_with("/model/dropout", 0.1).starts_with("model.dropout is 0.1, expected null"));
  EXPECT_TRUE(error_with("/model/byte_fallback", true).starts_with("model.byte_fallback is true, expected false"));
  EXPECT_TRUE(
      error_with("/model/continuing_subword_prefix", "##").starts_with("model.continuing_subword_prefix is '##'"));
  EXPECT_TRUE(error_with("/model/end_of_word_suffix", "</w>").starts_with("model.end_of_word_suffix is '</w>'"));
  EXPECT_TRUE(error_with("/model/new_option", 1).starts_with("model.new_option is 1, expected no such field"));
  EXPECT_TRUE(error_with("/pre_tokenizer/lower", true).starts_with("pre_tokenizer.lower is true,"));
}

TEST_F(TokenizerJson, AcceptsWhatChangesNothing) {
  EXPECT_EQ(error_with("/post_processor", {{"type", "ByteLevel"}, {"trim_offsets", true}}), "no error");
  EXPECT_EQ(error_with("/truncation", {{"max_length", 5}}), "no error");
  EXPECT_EQ(error_with("/padding", {{"length", 5}}), "no error");
  EXPECT_EQ(error_with("/model/dropout", 0.0), "no error");
  EXPECT_EQ(error_with("/model/end_of_word_suffix", ""), "no error");
  for (const char* const field : {"version", "truncation", "padding", "normalizer", "post_processor", "added_tokens"}) {
    EXPECT_EQ(error_after([&](Json& json) { json.erase(field); }), "no error") << field;
  }
}

// A TemplateProcessing in which "<s>" is token 300 and "pre" the two after it.
Json post_template(const std::vector<std::string>& pieces) {
  Json single = Json::array();
  for (const std::string& piece : pieces) {
    const bool is_text = piece.starts_with('$');
    single.push_back(is_text ? Json{{"Sequence", {{"id", piece.substr(1)}, {"type_id", 0}}}}
                             : Json{{"SpecialToken", {{"id", piece}, {"type_id", 0}}}});
  }
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", Json::array()},
          {"special_tokens",
           {{"<s>", {{"id", "<s>"}, {"ids", {300}}, {"tokens", {"<s>"}}}},
            {"pre", {{"id", "pre"}, {"ids", {301, 302}}, {"tokens", {"a", "b"}}}}}}};
}

Json post_sequence(const std::vector<Json>& processors) {
  return {{"type", "Sequence"}, {"processors", processors}};
}

TEST_F(TokenizerJson, ReadsWhatThePostProcessorPutsAroundAText) {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  const Json bert = {{"type", "BertProcessing"}, {"sep", {"</s>", 302}}, {"cls", {"<s>", 300}}};
  Json roberta = bert;
  roberta.update({{"type", "RobertaProcessing"}, {"trim_offsets", true}, {"add_prefix_space", true}});
  const struct {
    Json processor;
    Ids before, after;
  } cases[] = {
      {nullptr, {}, {}},
      {byte_level, {}, {}},
      {post_template({"$A"}), {}, {}},
      {post_sequence({byte_level, post_template({"$A"})}), {}, {}},
      {post_template({"<s>", "$A"}), {300}, {}},
      {post_template({"<s>", "<s>", "$A", "pre", "<s>"}), {300, 300}, {301, 302, 300}},
      {post_sequence({byte_level, post_template({"$A"}), post_template({"pre", "$A"}), byte_level}), {301, 302}, {}},
      {post_sequence({post_sequence({byte_level, bert})}), {300}, {302}},
      {bert, {300}, {302}},
      {roberta, {300}, {302}},
  };
  const Ids text = load_tokenizer(own_tokenizer).encode("Hello, 你好");
  for (const auto& [processor, before, after] : cases) {
    ASSERT_EQ(error_with("/post_processor", processor), "no error") << processor;
    const Tokenizer tokenizer = load_tokenizer(folder_.string());
    EXPECT_EQ(tokenizer.before_text(), before) << processor;
    EXPECT_EQ(tokenizer.after_text(), after) << processor;
    EXPECT_EQ(tokenizer.encode("Hello, 你好"), text) << processor;
    Ids expected = before;
    expected.insert(expected.end(), text.begin(), text.end());
    expected.insert(expected.end(), after.begin(), after.end());
    EXPECT_EQ(tokenizer.encode_with_special("Hello, 你好"), expected) << processor;
  }
}

// A token that is named often may not multiply its ids.
TEST_F(TokenizerJson, LimitsTheIdsThatAPostProcessorPutsAroundAText) {
  Json most = post_template(std::vector<std::string>(257, "<s>"));
  most["single"].back() = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  EXPECT_EQ(error_with("/post_processor", most), "no error");
  Json many = post_template(std::vector<std::string>(3000, "<s>"));
  many["special_tokens"]["<s>"]["ids"] = Ids(100'000, 300);
  EXPECT_EQ(error_with("/post_processor", many),
            "post_processor.single is an array of 3000, expected at most 256 ids before the text and after it");
  TokenizerData data = read_tokenizer(own_tokenizer);
  data.after_text.assign(257, 0);
  EXPECT_EQ(minimind::error_of([&] { Tokenizer{data}; }),
            data.source + ": its post-processor adds 257 ids to texts, expected at most 256");
}

TEST_F(TokenizerJson, LimitsTheBytesOfAddedTokens) {
  const std::string error = error_after([](Json& json) {
    Json token = json["added_tokens"][0];
    token["id"] = 100'000;
    token["content"] = std::string((std::size_t{4} << 20) + 1, 'a');
    json["added_tokens"].push_back(token);
  });
  EXPECT_TRUE(error.ends_with("...': the added tokens have over 4194304 bytes, expected fewer")) << error;
}

TEST_F(TokenizerJson, NamesWhatOfAPostProcessorItCannotDo) {
  EXPECT_NE(error_with("/post_processor", post_template({"$A", "<s>", "$A"})).find("expected the text once"),
            std::string::npos);
  EXPECT_TRUE(error_with("/post_processor", post_template({"<s>"})).starts_with("post_processor.single is "));
  EXPECT_NE(error_with("/post_processor", post_template({"$B"})).find("expected A, which is the text"),
            std::string::npos);
  EXPECT_NE(error_with("/post_processor", post_template({"$A", "none"})).find("special_tokens.none is"),
            std::string::npos);
  EXPECT_EQ(error_with("/post_processor", post_sequence({post_template({"$A", "<s>"}), post_template({"<s>", "$A"})})),
            "post_processor.processors[1].type is 'TemplateProcessing', expected ByteLevel after a processor that adds "
            "tokens");
  EXPECT_TRUE(error_with("/post_processor", {{"type", "Sequence"}, {"processors", 1}})
                  .starts_with("post_processor.processors is 1, expected an array of processors"));
  Json without_pieces = post_template({"$A"});
  without_pieces["single"] = "$A";
  EXPECT_TRUE(error_with("/post_processor", without_pieces)
                  .starts_with("post_processor.single is '$A', expected an array of tokens"));
  for (const char* const ids : {"300", "[]", "[-1]", "[1.5]", "[\"<s>\"]", "[2147483648]"}) {
    Json wrong_ids = post_template({"<s>", "$A"});
    wrong_ids["special_tokens"]["<s>"]["ids"] = Json::parse(ids);
    EXPECT_NE(error_with("/post_processor", wrong_ids).find(".ids is "), std::string::npos) << ids;
  }
  for (const char* const token :
       {"\"</s>\"", "[\"</s>\"]", "[2, \"</s>\"]", "[\"</s>\", \"2\"]", "[\"</s>\", -2]", "null"}) {
    const Json bert = {{"type", "BertProcessing"}, {"sep", Json::parse(token)}, {"cls", {"<s>", 300}}};
    EXPECT_NE(error_with("/post_processor", bert).find("expected a token and its id, as"), std::string::npos) << token;
  }
  EXPECT_NE(error_with("/post_processor",
                       post_sequence({{{"type", "BertProcessing"}, {"sep", {"</s>", 302}}, {"cls", {"<s>", 300}}},
                                      post_template({"$A"})}))
                .find("ByteLevel after a processor that adds tokens"),
            std::string::npos);
  Json of_no_token = post_template({"<s>", "$A"});
  of_no_token["special_tokens"]["<s>"]["ids"] = {99999};
  EXPECT_EQ(error_with("/post_processor", of_no_token),
            "its post-processor adds id 99999 to texts, expected ids of its tokens; save it again");
}

TEST_F(TokenizerJson, NamesMissingAndMistypedFields) {
  for (const char* const field : {"model", "pre_tokenizer", "decoder"}) {
    const std::string error = error_after([&](Json& json) { json.erase(field); });
    EXPECT_TRUE(error.starts_with(std::string(field) + " is missing")) << error;
  }
  EXPECT_TRUE(error_with("/model/vocab", nullptr).starts_with("model.vocab is null, expected a JSON object"));
  EXPECT_TRUE(error_with("/model/vocab/a", "1").starts_with("model.vocab.a is '1', expected a token id"));
  EXPECT_TRUE(error_with("/model/vocab/a", -1).starts_with("model.vocab.a is -1, expected a token id"));
  EXPECT_TRUE(error_with("/model/vocab/a", 1.0).starts_with("model.vocab.a is 1.0, expected a token id"));
  EXPECT_TRUE(error_with("/model/vocab/a", 1ull << 63).starts_with("model.vocab.a is 9223372036854775808,"));
  EXPECT_TRUE(error_with("/model/merges", "a b").starts_with("model.merges is 'a b', expected an array"));
  EXPECT_TRUE(error_with("/model/merges/3", "a b c").starts_with("model.merges[3] is 'a b c', expected two tokens"));
  EXPECT_TRUE(error_with("/model/merges/3", "ab").starts_with("model.merges[3] is 'ab', expected two tokens"));
  EXPECT_TRUE(error_with("/model/merges/3", nullptr).starts_with("model.merges[3] is null, expected two tokens"));
  EXPECT_TRUE(error_with("/model/merges/0", {1, "a"}).starts_with("model.merges[0] is [1,\"a\"], expected two"));
  EXPECT_NE(error_with("/pre_tokenizer", {{"lower", true}}).find("expected an object of type 'ByteLevel'"),
            std::string::npos);
  EXPECT_TRUE(error_with("/model/merges/0", {"a"}).starts_with("model.merges[0] is [\"a\"], expected two"));
  EXPECT_TRUE(error_with("/model/merges/0", {"a", 1}).starts_with("model.merges[0] is [\"a\",1], expected two"));
  EXPECT_TRUE(error_with("/added_tokens", 5).starts_with("added_tokens is 5, expected an array"));
  EXPECT_TRUE(error_with("/added_tokens/1", 5).starts_with("added_tokens[1] is 5, expected a JSON object"));
  EXPECT_TRUE(error_with("/added_tokens/1/lstrip", 1).starts_with("added_tokens[1].lstrip is 1, expected true or"));
  EXPECT_TRUE(error_with("/added_tokens/1/id", -1).starts_with("added_tokens[1].id is -1, expected a token id"));
  EXPECT_TRUE(error_with("/added_tokens/1/content", nullptr).starts_with("added_tokens[1].content is null,"));
  EXPECT_EQ(error_after([](Json& json) { json["added_tokens"][1].erase("special"); }),
            "added_tokens[1].special is missing, expected true or false");
}

TEST_F(TokenizerJson, RejectsOtherJsonThanObjects) {
  EXPECT_EQ(error_of("[1]"), "is [1], expected a JSON object");
  EXPECT_TRUE(error_of("{\"a\":").starts_with("is not valid JSON at byte 5 of 5"));
  EXPECT_TRUE(error_of("{\"a\": \"\xFF\"}").starts_with("is not valid JSON at byte"));
  EXPECT_TRUE(error_of("").starts_with("is empty"));
}

TEST_F(TokenizerJson, RejectsDeepNestingWithoutRecursion) {
  const std::size_t depth = 200000;
  EXPECT_EQ(error_of(std::string(depth, '[') + std::string(depth, ']')),
            "is nested too deeply, expected at most 16 levels");
  std::string objects;
  for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(objects), "is nested too deeply, expected at most 16 levels");
}

TEST_F(TokenizerJson, CorruptFilesAreRejectedOrLoadButNeverCrash) {
  const std::string text = json_.dump();
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (unsigned round = 0; round < cases(300); ++round) {
    std::string corrupt = text;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(corrupt.size());
      switch (below(3)) {
        case 0:
          corrupt[at] = static_cast<char>(below(256));
          break;
        case 1:
          corrupt.erase(at, 1 + below(20));
          break;
        default:
          corrupt.insert(at, corrupt.substr(below(corrupt.size()), 1 + below(20)));
      }
    }
    error_of(corrupt);  // which checks that an error names the file
  }
}

TEST_F(TokenizerJson, ReadsTheConfigNextToIt) {
  write("tokenizer_config.json", R"({"bos_token": {"content": "<|user|>"}, "eos_token": "<|end|>", "pad_token": null,
      "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}], "other": [1]})");
  EXPECT_EQ(error_of(json_.dump()), "no error");
  EXPECT_EQ(read_tokenizer_json(folder_.string()).bos_token, "<|user|>");
  EXPECT_EQ(read_tokenizer_json(folder_.string()).eos_token, "<|end|>");
  EXPECT_EQ(read_tokenizer_json(folder_.string()).pad_token, std::nullopt);
  EXPECT_EQ(read_tokenizer(folder_.string()).chat_template, "D");
  EXPECT_EQ(read_tokenizer(folder_.string()).tool_use_template, "T");
  write("chat_template.jinja", "J");
  EXPECT_EQ(read_tokenizer(folder_.string()).chat_template, "J");
  EXPECT_EQ(read_tokenizer(folder_.string()).tool_use_template, std::nullopt) << "of the config, which has no say";
}

TEST_F(TokenizerJson, RejectsABrokenConfigNextToIt) {
  const auto error_with_config = [&](const std::string& config) {
    write("tokenizer_config.json", config);
    return error_of(json_.dump(), "tokenizer_config.json");
  };
  EXPECT_EQ(error_with_config(R"({"bos_token": 1})"), "bos_token is 1, expected a string or null");
  EXPECT_EQ(error_with_config(R"({"bos_token": {"text": 1}})"), "bos_token.content is missing, expected a string");
  EXPECT_EQ(error_with_config(R"({"chat_template": 1})"), "chat_template is 1, expected a string or null");
  EXPECT_EQ(error_with_config(R"({"chat_template": [{"name": 1}, 2]})"),
            "chat_template is [{\"name\":1},2], expected a string, or an array with a template named \"default\"");
  EXPECT_NE(error_with_config(R"({"chat_template": [{"name": "default"}, {"name": "default", "template": 1}]})")
                .find("an array with a template named \"default\""),
            std::string::npos);
  EXPECT_TRUE(error_with_config("{").starts_with("is not valid JSON"));
}

TEST_F(TokenizerJson, ReadsTheTemplatesNextToIt) {
  write("tokenizer.json", json_.dump());
  write("chat_template.jinja", "J");
  fs::create_directories(folder_ / "additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "T");
  EXPECT_EQ(read_tokenizer(folder_.string()).chat_template, "J");
  EXPECT_EQ(read_tokenizer(folder_.string()).tool_use_template, "T");
  for (const char* const name : {"chat_template.jinja", "additional_chat_templates/tool_use.jinja"}) {
    write(name, "\xff");
    EXPECT_EQ(error_of(json_.dump(), name), "is not UTF-8, expected a Jinja template");
    write(name, "J");
  }
}

// A private file that a downloaded model names by a link would be published by a server, or by convert.
TEST_F(TokenizerJson, FollowsNoLinkOutOfTheFolder) {
  fs::create_directories(folder_ / "private");
  write("private/file", "{}");
  fs::create_directories(folder_ / "model");
  write("model/tokenizer.json", json_.dump());
  const std::string model = (folder_ / "model").string();
  for (const char* const name : {"tokenizer_config.json", "chat_template.jinja"}) {
    const fs::path link = folder_ / "model" / name;
    fs::create_symlink("../private/file", link);
    for (const std::string& path : {model, model + "/tokenizer.json"}) {
      EXPECT_EQ(minimind::error_of([&] { read_tokenizer(path); }),
                link.string() + ": is a link to " + fs::canonical(folder_ / "private/file").string() +
                    ", expected a file in its folder; put a copy of the file in place of the link, if it is part of "
                    "this model");
    }
    fs::remove(link);
    write(std::string("model/other-") + name, "{}");
    fs::create_symlink(std::string("other-") + name, link);
    EXPECT_NO_THROW(read_tokenizer(model));
  }
  fs::create_directory_symlink("../private", folder_ / "model/additional_chat_templates");
  write("private/tool_use.jinja", "T");
  EXPECT_THROW(read_tokenizer(model), Error);
}

TEST_F(TokenizerJson, FollowsTheLinksOfHuggingFacesCache) {
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots/0123/deep");
  write("blobs/4567", "J");
  for (const char* const name : {"snapshots/0123", "snapshots/0123/deep"}) {
    write(std::string(name) + "/tokenizer.json", json_.dump());
    const std::string up = name == std::string("snapshots/0123") ? "../../" : "../../../";
    fs::create_symlink(up + "blobs/4567", folder_ / name / "chat_template.jinja");
    EXPECT_EQ(read_tokenizer((folder_ / name).string()).chat_template, "J");
  }
  fs::create_directory_symlink("snapshots/0123", folder_ / "link");
  EXPECT_EQ(read_tokenizer((folder_ / "link").string()).chat_template, "J");
  fs::rename(folder_ / "blobs", folder_ / "private");
  fs::create_directory_symlink("private", folder_ / "blobs");
  EXPECT_THROW(read_tokenizer((folder_ / "link").string()), Error) << "the blobs of a model may not be a link";
}

TEST_F(TokenizerJson, MarksInARowAreLimitedIfTheyAreBroughtIntoOrder) {
  Json json = json_;
  json["normalizer"] = {{"type", "NFC"}};
  write("normal.json", json.dump());
  const Tokenizer tokenizer(read_tokenizer_json((folder_ / "normal.json").string()));
  std::string text = "a";
  for (int i = 0; i < 64; ++i) text += "\u0301\u0323";
  EXPECT_GT(tokenizer.encode(text + "b").size(), 0u);
  EXPECT_THROW(tokenizer.encode(text + "\u0301"), Error);
  EXPECT_TRUE(error_with("/normalizer", {{"type", "Other"}, {"normalizers", Json::array()}})
                  .starts_with("normalizer is an object of type 'Other', expected null, NFC"));
}

TEST_F(TokenizerJson, RejectsWhatIsRepeated) {
  const std::string text = json_.dump();
  const std::size_t vocab = text.find(R"("vocab":{)"), first = vocab + 9;
  EXPECT_EQ(error_of(text.substr(0, first) + R"("!":7000,)" + text.substr(first)),
            "model.vocab: token '!': is repeated, expected once");
  EXPECT_EQ(error_of(text.substr(0, vocab) + R"("vocab":{"x":1},)" + text.substr(vocab)),
            "the entry 'vocab' is repeated, expected once");
}

TEST_F(TokenizerJson, HasAtMostAMillionMerges) {
  const Json merges(std::vector<Json>(most_tokenizer_entries + 1, "a b"));
  EXPECT_NE(error_with("/model/merges", merges).find("expected at most " + std::to_string(most_tokenizer_entries)),
            std::string::npos);
}

TEST_F(TokenizerJson, SaysWhichFileIsMissing) {
  try {
    load_tokenizer(folder_.string());
    FAIL() << "loaded from an empty folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder_ / "tokenizer.json").string() + ": cannot be opened: No such file or directory");
  }
}

}  // namespace
}  // namespace minimind
