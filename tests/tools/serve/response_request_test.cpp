#include "tools/serve/response_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/chat/message_json.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

ResponseRequest read(const std::string& body, const ResponseStore& store = {}, std::size_t most_text = 100'000) {
  return read_response_request(Json::parse(body), {}, store, most_text);
}

// The field that the error of a body is about; empty if it has none.
std::string wrong_field(const std::string& body, const ResponseStore& store = {}, std::size_t most_text = 100'000) {
  try {
    read(body, store, most_text);
  } catch (const RequestError& error) {
    return error.param();
  }
  return "";
}

TEST(ResponseRequest, ItemsOfTheInputAreTheMessagesOfAChat) {
  const std::string user = R"({"role": "user", "content": "a"})";
  const std::string answer = R"({"role": "assistant", "content": "b"})";
  const std::string thought = R"({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}]})";
  const std::string call = R"({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})";
  const std::string result = R"({"type": "function_call_output", "call_id": "c", "output": "1"})";
  const std::string calls =
      R"("tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]})";
  const std::string tool = R"({"role": "tool", "tool_call_id": "c", "content": "1"})";
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"role": "user", "content": [{"type": "text", "text": "a"}]})", user},
      {user + ", " + thought + ", " + answer + ", " + user,
       user + R"(, {"role": "assistant", "content": "b", "reasoning_content": "t"}, )" + user},
      {user + ", " + answer + ", " + call + ", " + result,
       user + R"(, {"role": "assistant", "content": "b", )" + calls + ", " + tool},
      {user + ", " + thought + ", " + call + ", " + result,
       user + R"(, {"role": "assistant", "content": "", "reasoning_content": "t", )" + calls + ", " + tool},
      {call + ", " + result, R"({"role": "assistant", "content": "", )" + calls + ", " + tool},
      {user + ", " + answer + ", " + thought + ", " + call + ", " + result,
       user + ", " + answer + R"(, {"role": "assistant", "content": "", "reasoning_content": "t", )" + calls + ", " +
           tool},
      {user + R"(, {"type": "reasoning", "summary": [], "content": null}, )" + answer + ", " + user,
       user + ", " + answer + ", " + user}};
  for (const auto& [items, messages] : cases) {
    EXPECT_EQ(messages_json(read(R"({"input": [)" + items + "]}").text.messages, false),
              messages_json(parse_conversation("[" + messages + "]", "test").messages, false))
        << items;
  }
}

TEST(ResponseRequest, NamesTheFieldThatIsWrong) {
  for (const auto& [body, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({"input": [{"type": "reasoning", "encrypted_content": "x"}]})", "input[0].encrypted_content"},
           {R"({"input": [{"type": "reasoning", "content": "x"}]})", "input[0].content"},
           {R"({"input": "a", "tools": {}})", "tools"},
           {R"({"input": "a", "tool_choice": {"type": "allowed_tools"}})", "tool_choice"},
           {R"({"input": "a", "include": "message.output_text.logprobs"})", "include"},
           {R"({"input": "a", "stream": true, "stream_options": {"include_usage": true}})",
            "stream_options.include_usage"},
           {R"({"input": "a", "include": ["nothing"]})", "include"},
           {R"({"input": "a", "samplers": ["top_k"]})", ""},
           {R"({"input": [{"role": "user", "content": "a", "caller": {"type": "direct"}}]})", "input[0].caller"},
           {R"({"input": "a", "include": ["code_interpreter_call.outputs", "web_search_call.results"]})", ""},
           {R"({"input": "a", "prompt_cache_options": {"ttl": "30m"}, "context_management": []})", ""},
           {R"({"input": "a", "context_management": [{"type": "compaction"}]})", "context_management"},
           {R"({"input": "a", "reasoning": {"context": "auto", "mode": "standard"}})", ""},
           {R"({"input": "a", "reasoning": {"mode": "pro"}})", "reasoning.mode"},
           {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}",
                           "caller": {"type": "direct"}},
                          {"type": "function_call_output", "call_id": "c", "output": "1"}]})",
            ""},
           {R"({"input": "a", "stream": true, "stream_options": {"include_obfuscation": false}})", ""}}) {
    EXPECT_EQ(wrong_field(body), field) << body;
  }
}

TEST(ResponseRequest, TakesTheNamesOfAUser) {
  EXPECT_EQ(wrong_field(R"({"input": "a", "user": "u", "user_id": "u", "random_seed": 5, "rid": "r"})"), "");
  EXPECT_EQ(read(R"({"input": "a", "do_sample": false})").text.sampling.temperature, 0);
  EXPECT_EQ(wrong_field(R"({"input": "a", "user_id": 5})"), "user_id");
}

TEST(ResponseRequest, NullCountsAsMissing) {
  const ResponseRequest request = read(R"({"input": "a", "text": null, "reasoning": null, "tools": [{"type": "function",
      "name": "f", "strict": null, "description": null, "parameters": null}]})");
  EXPECT_EQ(Json::parse(request.text.tools), Json::parse(R"([{"type": "function", "function": {"name": "f"}}])"));
  const Json settings = Json::parse("{" + request.settings + "}");
  EXPECT_EQ(settings["text"], Json::parse(R"({"format": {"type": "text"}})"));
  EXPECT_EQ(settings["reasoning"], Json::parse(R"({"effort": null, "summary": null})"));
}

TEST(ResponseRequest, AConversationThatIsTooLongNamesTheFieldThatHasIt) {
  const std::string text(90, 'a');
  EXPECT_EQ(wrong_field(R"({"input": ")" + text + "\"}", {}, 100), "input");
  ResponseStore store;
  store.add("resp_a", {R"({"output": []})", R"([{"role": "user", "content": ")" + text + "\"}]"});
  EXPECT_EQ(wrong_field(R"({"input": "b", "previous_response_id": "resp_a"})", store, 100), "previous_response_id");
}

}  // namespace
}  // namespace minimind
