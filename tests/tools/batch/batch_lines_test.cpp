#include "tools/batch/batch_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

const std::string chat = R"("body": {"messages": [{"role": "user", "content": "a"}]})";

TEST(BatchLine, IsOpenAIsLineOrABodyAlone) {
  const ParsedLine whole =
      parse_request(R"({"custom_id": "x", "method": "POST", "url": "/v1/chat/completions", )" + chat + "}", {});
  EXPECT_EQ(whole.custom_id, "x");
  EXPECT_TRUE(whole.request.chat);
  RequestDefaults one_prompt;
  one_prompt.one_prompt = true;
  const ParsedLine text =
      parse_request(R"({"method": "POST", "url": "/v1/completions", "body": {"prompt": "a"}})", one_prompt);
  EXPECT_EQ(text.custom_id, std::nullopt);
  EXPECT_FALSE(text.request.chat);
  EXPECT_TRUE(parse_request(R"({"messages": [{"role": "user", "content": "a"}]})", {}).request.chat);
}

TEST(BatchLine, NamesWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff", "the line is not UTF-8 at byte 0"},
      {"[1]", "the line is a list, expected a JSON object"},
      {"{", "the line"},
      {R"({"method": "POST", "url": "/v1/chat/completions", "body": 1})", "body is not an object"},
      {R"({"method": "GET", "url": "/v1/chat/completions", )" + chat + "}", "method is not \"POST\""},
      {R"({"method": 1, )" + chat + "}", "method is not \"POST\""},
      {"{" + chat + "}", "method is not \"POST\""},
      {R"({"method": "POST", "url": "/v1/other", )" + chat + "}", "url is neither"},
      {R"({"method": "POST", "url": ["/v1/completions"], )" + chat + "}", "url is neither"},
      {R"({"method": "POST", )" + chat + "}", "url is neither"},
      {R"({"method": "POST", "url": "/v1/completions", )" + chat + "}", "prompt is missing"},
      {R"({"custom_id": "x"})", "prompt"},
      {R"({"body": null})", "body is not an object"},
      {R"({"prompt": 1e999})", "the line"},
      {R"({"custom_id": 7, "prompt": "a"})", "custom_id is 7, expected a string"},
      {R"({"custom_id": ["x"], "method": "POST", "url": "/v1/chat/completions", )" + chat + "}",
       "custom_id is a list, expected a string"},
      {R"({"prompt": "a", "seed": 123456789012345678901234567890})", "the line"},
  };
  for (const auto& [line, message] : cases) {
    try {
      parse_request(line, {});
      ADD_FAILURE() << line;
    } catch (const RequestError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(message)) << line << ": " << error.what();
    }
  }
}

TEST(BatchLine, HasACustomIdIfItIsAString) {
  EXPECT_EQ(custom_id_of(R"({"custom_id": "x"})"), "x");
  EXPECT_EQ(custom_id_of(R"({"custom_id": "x", "seed": 123456789012345678901234567890})"), "x");
  for (const char* const line : {R"({"custom_id": 1})", "{}", "[]", "{", "", "\"custom_id\"", "\xff", "[[[["}) {
    EXPECT_EQ(custom_id_of(line), std::nullopt) << line;
  }
  RequestDefaults one_prompt;
  one_prompt.one_prompt = true;
  EXPECT_EQ(parse_request(R"({"custom_id": "x", "prompt": "a"})", one_prompt).custom_id, "x");
}

}  // namespace
}  // namespace minimind
