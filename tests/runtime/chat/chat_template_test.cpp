#include "runtime/chat/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/cpu_seconds.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

std::string error_of_input(const std::string& input) {
  return error_of([&] { parse_chat_input(input, "line 1"); });
}

TEST(ChatTemplate, TheTemplatesOfOursWriteWhatMiniMindsWrite) {
  std::ifstream lines(MINIMIND_SOURCE_DIR "/tests/golden_jinja/families.jsonl");
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto golden = nlohmann::ordered_json::parse(line);
    const std::string name = golden.at("family");
    const ChatInput input = parse_chat_input(golden.at("input").dump(), "golden");
    const auto families = name == "v1"   ? std::vector{Family::v1, Family::v2_early}
                          : name == "v2" ? std::vector{Family::v2, Family::llama}
                                         : std::vector{Family::v3, Family::qwen3, Family::qwen3_moe};
    for (const Family family : families) {
      EXPECT_EQ(ChatTemplate::of_family(family, {}).render(input, 0).bytes, golden.at("rendered").get<std::string>())
          << name_of(family) << ": " << line;
    }
  }
  EXPECT_GT(count, 200u);
}

TEST(ChatTemplate, GivesTheTemplateWhatTransformersGives) {
  const ChatTemplate shown("{{ [tools, documents, add_generation_prompt, bos_token, eos_token, pad_token, thinking] }}",
                           "test", {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  EXPECT_EQ(shown.render(parse_chat_input(R"({"messages": []})", "test"), 0).bytes,
            "[None, None, False, '<s>', '</s>', Undefined, Undefined]");
  EXPECT_EQ(shown
                .render(parse_chat_input(R"({"messages": [], "tools": [{"a": 1}], "add_generation_prompt": true,
                                              "thinking": null, "eos_token": "E"})",
                                         "test"),
                        0)
                .bytes,
            "[[{'a': 1}], None, True, '<s>', 'E', Undefined, None]");
}

TEST(ChatTemplate, TakesTheSpecialTokensOfATokenizer) {
  TokenizerData tokenizer;
  tokenizer.bos_token = "<s>";
  tokenizer.config_unk_token = "<unk>";
  EXPECT_EQ(special_tokens_of(tokenizer), (SpecialTokens{{"bos_token", "<s>"}, {"unk_token", "<unk>"}}));
}

TEST(ChatTemplate, UsesTheTemplateNamedToolUseForTools) {
  TokenizerData tokenizer;
  EXPECT_FALSE(ChatTemplate::of_tokenizer(tokenizer).has_value());
  tokenizer.chat_template = "default {{ eos_token }}";
  tokenizer.eos_token = "</s>";
  const auto rendered = [&](const std::string& input) {
    return ChatTemplate::of_tokenizer(tokenizer)->render(parse_chat_input(input, "test"), 0).bytes;
  };
  EXPECT_EQ(rendered(R"({"messages": [], "tools": [{}]})"), "default </s>");
  tokenizer.tool_use_template = "tools {{ eos_token }}";
  EXPECT_EQ(rendered(R"({"messages": [], "tools": [{}]})"), "tools </s>");
  EXPECT_EQ(rendered(R"({"messages": [], "tools": []})"), "tools </s>") << "as transformers has it";
  EXPECT_EQ(rendered(R"({"messages": [], "tools": null})"), "default </s>");
  EXPECT_EQ(rendered(R"({"messages": []})"), "default </s>");
}

TEST(ChatTemplate, ReadsAMessageOfManyFieldsInLinearTime) {
  std::string fields;
  for (int i = 0; i < 200'000; ++i) fields += ", \"field " + std::to_string(i) + "\": 1";
  const double start = cpu_seconds();
  const ChatInput input = parse_chat_input(R"({"conversations": [{"role": "user")" + fields + "}]}", "line 1");
  EXPECT_LT(cpu_seconds() - start, most_cpu_seconds);
  EXPECT_EQ(input.messages.list()->items[0].dict()->size(), 200'001u);
}

TEST(ChatTemplate, RejectsOtherInputs) {
  EXPECT_EQ(error_of_input("[]"), "line 1: is a list, expected a JSON object with \"messages\"");
  EXPECT_EQ(error_of_input("{}"), "line 1: has no \"messages\"");
  EXPECT_EQ(error_of_input(R"({"messages": "hi"})"), "line 1: \"messages\" is a string, expected a list of objects");
  EXPECT_EQ(error_of_input(R"({"messages": ["hi"]})"), "line 1: \"messages\" is a list, expected a list of objects");
  EXPECT_EQ(error_of_input(R"({"messages": [], "tools": {}})"),
            "line 1: \"tools\" is a mapping, expected a list of objects, or null");
  EXPECT_EQ(error_of_input(R"({"messages": [], "add_generation_prompt": 1})"),
            "line 1: \"add_generation_prompt\" is an integer, expected true or false");
  EXPECT_EQ(error_of_input(R"({"messages": [)"), "line 1: is not valid JSON at byte 15");
}

TEST(ChatTemplate, NamesTheTemplateInItsErrors) {
  try {
    ChatTemplate("{% if %}", "a/tokenizer_config.json: chat_template", {});
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "a/tokenizer_config.json: chat_template: line 1, column 7: found '%}', expected an expression");
  }
}

}  // namespace
}  // namespace minimind
