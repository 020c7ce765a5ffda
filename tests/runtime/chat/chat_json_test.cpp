#include "runtime/chat/chat_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/jinja/jinja.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

std::string rendered(const std::string& source, const std::string& variables) {
  const jinja::Value value = template_value(parse_chat_json(variables, "variables"));
  return JinjaTemplate(source, "test").render(*value.dict(), 0);
}

TEST(ChatJson, AcceptsAndRejectsTheTextsThatPythonDoes) {
  EXPECT_EQ(rendered("{{ x }}", R"({"x": [1, -1, 1.0, 1e3, true, null, "é\u4f60", {}, 9223372036854775807]})"),
            "[1, -1, 1.0, 1000.0, True, None, 'é你', {}, 9223372036854775807]");
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_chat_json(text, "x.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("{\"a\": }"), "x.json: is not valid JSON at byte 7");
  EXPECT_NE(message("9223372036854775808"), "");
  EXPECT_NE(message("-9223372036854775809"), "");
  EXPECT_NE(message("\"\\ud800\""), "");
  EXPECT_NE(message("1e999"), "");
  EXPECT_NE(message(std::string(1'000'000, '[')), "");
  EXPECT_NE(message("[1] 2"), "");
  EXPECT_NE(message(""), "");
}

TEST(ChatJson, IsWrittenAsPythonWritesIt) {
  const std::string text =
      R"({"b": [1, -1.0, 1e+16, 1000000000000000.0, 1e-05], "a": {}, "b2": [], "t": "\u0001é\"/\n"})";
  EXPECT_EQ(json_line(parse_chat_json(text, "x")), text);
  EXPECT_EQ(json_indented(parse_chat_json(R"({"a":[1,{"b":null}],"c":[]})", "x")),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": []\n}");
  EXPECT_EQ(json_line(parse_chat_json(R"({"b": 1, "a": 2, "b": 3})", "x")), R"({"b": 3, "a": 2})");
}

TEST(ChatJson, AListThatIsWrittenAsItIsMadeReadsLikeAnother) {
  const ChatJson items = ChatJson::array({nullptr, {{"a", {1, "\xFF"}}}, -0.5, "你"});
  WrittenList list;
  EXPECT_EQ(json_line({{"x", list.take()}}), R"({"x": []})");
  for (const ChatJson& item : items) list.push_back(item);
  const ChatJson written{{"x", list.take()}};
  EXPECT_EQ(json_line(written), json_line({{"x", items}}));
  EXPECT_EQ(ChatJson::parse(json_indented(written)), ChatJson::parse(json_line(written)));
  list.push_back(1);
  EXPECT_EQ(json_line(list.take()), "[1]") << "a new one";
}

TEST(ChatJson, WritesTextsAndIntegersAsTheLibraryDoes) {
  std::vector<ChatJson> values{0, -1, INT64_MIN, INT64_MAX, UINT64_MAX, true, nullptr, "", "\u2028", "é你😀"};
  for (int first = 0; first < 256; ++first) {
    values.push_back(std::string(1, static_cast<char>(first)));
    values.push_back(std::string("é") + static_cast<char>(first) + "x");
    values.push_back(std::string("\xe4\xbd") + static_cast<char>(first));
    values.push_back(std::string("\xed") + static_cast<char>(first) + "\x80");
  }
  for (const ChatJson& value : values) {
    const std::string expected = dump_json(value, -1, InvalidUtf8::replace);
    EXPECT_EQ(json_line(value), expected);
    if (value.is_string()) {
      EXPECT_EQ(json_line({{value.get<std::string>(), 1}}), "{" + expected + ": 1}");
    }
  }
}

}  // namespace
}  // namespace minimind
