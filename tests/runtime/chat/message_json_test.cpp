#include "runtime/chat/message_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/conversation_prompt.h"
#include "runtime/jinja/jinja.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::string error_of_conversation(const std::string& json) {
  return error_of([&] { parse_conversation(json, "chat.json"); });
}

std::string error_of_tools(const std::string& json) {
  return error_of([&] { parse_tools(json, "tools.json"); });
}

SavedConversation a_conversation() {
  return {.messages = {{.role = Role::system, .content = "s"},
                       {.role = Role::user, .content = "北京\n天气\"?"},
                       {.role = Role::assistant,
                        .content = "",
                        .reasoning = "嗯",
                        .tool_calls = {{.id = "call_1", .name = "weather", .arguments = R"({"city": "北京"})"}}},
                       {.role = Role::tool, .content = "晴", .tool_call_id = "call_1", .name = "weather"},
                       {.role = Role::assistant, .content = "晴天。"}},
          .tools = R"([{"type": "function", "function": {"name": "weather", "parameters": {"z": 1, "a": 2}}}])"};
}

TEST(MessageJson, IsReadAsItWasWritten) {
  const SavedConversation conversation = a_conversation();
  const SavedConversation read = parse_conversation(conversation_json(conversation), "chat.json");
  EXPECT_EQ(read.messages, conversation.messages);
  EXPECT_EQ(read.tools, conversation.tools);
  EXPECT_TRUE(parse_conversation(conversation_json({}), "chat.json").messages.empty());
}

TEST(MessageJson, ResultsMayNameTheirCallAsQwenAgentDoes) {
  const SavedConversation read = parse_conversation(
      R"([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
          {"role": "tool", "name": "f", "content": "1", "id": "a", "extra": {"function_id": "a"}}])",
      "chat.json");
  EXPECT_EQ(read.messages[1].tool_call_id, "a");
}

TEST(MessageJson, AnswersMayNameTheirAgentAndResultsTheirToolAsSwarmDoes) {
  const SavedConversation read = parse_conversation(
      R"([{"role": "assistant", "sender": "A", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
          {"role": "tool", "tool_name": "f", "content": "1", "tool_call_id": "a"}])",
      "chat.json");
  EXPECT_EQ(read.messages[0].name, "");
  EXPECT_EQ(read.messages[1].name, "f");
  EXPECT_THROW(parse_conversation(R"([{"role": "user", "sender": "A", "content": "a"}])", "chat.json"), Error);
  EXPECT_THROW(parse_conversation(
                   R"([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
              {"role": "tool", "name": "g", "tool_name": "f", "content": "1", "tool_call_id": "a"}])",
                   "chat.json"),
               Error);
}

TEST(MessageJson, ReadsCallsAndResultsAsBeforeThereWereTools) {
  const SavedConversation read = parse_conversation(
      R"([{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{\"a\": 1}"}},
          {"role": "function", "name": "f", "content": "1"}])",
      "chat.json");
  ASSERT_EQ(read.messages[0].tool_calls.size(), 1u);
  EXPECT_EQ(read.messages[0].tool_calls[0].name, "f");
  EXPECT_EQ(read.messages[0].tool_calls[0].arguments, "{\"a\": 1}");
  EXPECT_EQ(read.messages[1].role, Role::tool);
  EXPECT_THROW(parse_conversation(R"([{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"},
                                       "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}])",
                                  "chat.json"),
               Error);
}

TEST(MessageJson, IsWrittenForPeopleAndForOpenAi) {
  const std::string text = conversation_json(a_conversation());
  EXPECT_TRUE(
      text.starts_with("{\n  \"messages\": [\n    {\n      \"role\": \"system\",\n      \"content\": \"s\"\n    },"))
      << text;
  EXPECT_TRUE(text.ends_with("}\n"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["messages"][2]["tool_calls"][0]["function"]["arguments"], R"({"city": "北京"})");
  EXPECT_EQ(json["messages"][2]["reasoning_content"], "嗯");
  EXPECT_EQ(json["tools"][0]["function"]["name"], "weather");
}

TEST(MessageJson, VerbatimTextsAreForSessionsOnly) {
  SavedConversation conversation = a_conversation();
  conversation.messages.back().verbatim = "v";
  EXPECT_EQ(parse_conversation(conversation_json(conversation), "c").messages.back().verbatim, std::nullopt);
  EXPECT_EQ(read_messages(messages_json(conversation.messages, true), true, "c"), conversation.messages);
}

TEST(MessageJson, MarksOfVerbatimTextsArePairsOfPositionsInOrder) {
  const auto error_with = [](const std::string& marks) {
    const ChatJson list = parse_chat_json(
        R"([{"role": "assistant", "content": "", "verbatim": "four", "verbatim_plain": )" + marks + "}]", "c");
    return error_of([&] { read_messages(list, true, "c"); });
  };
  EXPECT_EQ(error_with("[0, 1, 1, 4]"), "");
  for (const char* marks : {"[-1, 1]", "[0, 5]", "[2, 1]", "[\"0\", 1]"}) {
    EXPECT_NE(error_with(marks).find("expected positions in the text, in order"), std::string::npos)
        << error_with(marks);
  }
  for (const char* marks : {"[0]", "{}", "1"}) {
    EXPECT_NE(error_with(marks).find("expected a list of pairs of positions"), std::string::npos) << error_with(marks);
  }
}

TEST(MessageJson, ReadsResultsOfCallsThatAreInTheTextOfTheAnswerOrLost) {
  const std::string results = R"({"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}])";
  for (const std::string content : {R"("<tool_call>\n{\"name\": \"f\"}\n</tool_call>")", R"("")"}) {
    const auto read = parse_conversation(R"([{"role": "assistant", "content": )" + content + "}, " + results, "x");
    EXPECT_EQ(read.messages.size(), 3U);
  }
}

TEST(MessageJson, ReadsWhatOthersWrite) {
  const auto read = parse_conversation(
      R"([{"role": "user", "content": "q", "name": "Li"},
          {"role": "assistant", "content": null, "refusal": null,
           "tool_calls": [{"name": "f", "arguments": {"a": [1, 2.5, null]}}, {"function": {"name": "g"}}]},
          {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}])",
      "chat.json");
  EXPECT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[0].name, "Li");
  EXPECT_EQ(read.messages[1].tool_calls, (std::vector<ToolCall>{{.name = "f", .arguments = R"({"a": [1, 2.5, null]})"},
                                                                {.name = "g", .arguments = "{}"}}));
}

TEST(MessageJson, AnAnswerMayComeFirstAndAfterAnother) {
  const auto read = parse_conversation(
      R"([{"role": "system", "content": "s"}, {"role": "assistant", "content": "hi"},
          {"role": "assistant", "content": null, "reasoning": "t"}, {"role": "user", "content": "q"}])",
      "chat.json");
  ASSERT_EQ(read.messages.size(), 4u);
  EXPECT_EQ(read.messages[2], (Message{.role = Role::assistant, .content = "", .reasoning = "t"}));
}

TEST(MessageJson, ReadsContentInParts) {
  const auto read = parse_conversation(
      R"([{"role": "developer", "content": [{"type": "text", "text": "s"}]},
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])",
      "chat.json");
  EXPECT_EQ(read.messages,
            (std::vector<Message>{{.role = Role::system, .content = "s"}, {.role = Role::user, .content = "a\nb"}}));
}

TEST(MessageJson, ReadsMarkedTextsRefusalsAndCallsWithEmptyArguments) {
  const auto read = parse_conversation(
      R"([{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
           "cache_control": {"type": "ephemeral"}},
          {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "refusal", "refusal": "no"}],
           "tool_calls": [{"function": {"name": "f", "arguments": ""}}]}])",
      "chat.json");
  EXPECT_EQ(read.messages[0].content, "a");
  EXPECT_EQ(read.messages[1].content, "b\nno");
  EXPECT_EQ(read.messages[1].tool_calls, (std::vector<ToolCall>{{.name = "f", .arguments = "{}"}}));
}

// The messages as a chat template sees them, as JSON.
std::string rendered_messages(const std::vector<Message>& messages) {
  jinja::Dict variables;
  variables.set("messages", template_messages(messages));
  return JinjaTemplate("{{ messages|tojson }}", "test").render(variables, 0);
}

// OpenAI's API has them as text, which may be cut off or a mistake of the model.
TEST(MessageJson, ArgumentsThatAreNoObjectStayText) {
  for (const std::string arguments : {R"({"city": "北)", "null", "[1]", "Berlin"}) {
    const std::string text = R"([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": )" +
                             json_line(ChatJson(arguments)) + "}]}]";
    const auto read = parse_conversation(text, "chat.json");
    EXPECT_EQ(read.messages[0].tool_calls, (std::vector<ToolCall>{{.name = "f", .arguments = arguments}}));
    EXPECT_NE(rendered_messages(read.messages).find(json_line(ChatJson(arguments))), std::string::npos) << arguments;
    EXPECT_EQ(parse_conversation(conversation_json(read), "chat.json").messages, read.messages);
    const MarkedText prompt = render_prompt(ChatTemplate::of_family(Family::v3, {}), {}, read.messages, false);
    EXPECT_NE(prompt.bytes.find(R"({"name": "f", "arguments": )" + arguments + "}"), std::string::npos) << prompt.bytes;
  }
}

TEST(MessageJson, ARefusalIsTheContentOfAnAnswerWithoutOne) {
  const auto read = parse_conversation(R"([{"role": "assistant", "content": null, "refusal": "no"},
                                           {"role": "assistant", "content": "b", "refusal": null}])",
                                       "chat.json");
  EXPECT_EQ(read.messages[0].content, "no");
  EXPECT_EQ(read.messages[1].content, "b");
}

TEST(MessageJson, ReadsKeysThatHaveNothing) {
  const auto read = parse_conversation(
      R"([{"role": "user", "content": "a", "images": []},
          {"role": "assistant", "content": "b", "reasoning_details": [], "provider_specific_fields": {}, "audio": null}])",
      "chat.json");
  EXPECT_EQ(read.messages,
            (std::vector<Message>{{.role = Role::user, .content = "a"}, {.role = Role::assistant, .content = "b"}}));
}

TEST(MessageJson, ReadsAResultInParts) {
  const auto read = parse_conversation(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"name": "f"}]},
          {"role": "tool", "content": "b"}, {"role": "tool", "content": "c"}])",
      "chat.json");
  EXPECT_EQ(read.messages.back(), (Message{.role = Role::tool, .content = "c"}));
}

TEST(MessageJson, ErrorsNameTheInvalidMessage) {
  const auto expect = [](const std::string& json, const std::string& part) {
    const std::string message = error_of_conversation(json);
    EXPECT_TRUE(message.starts_with("chat.json: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << json << "\n" << message;
  };
  expect("", "not valid JSON");
  expect("1", "expected an object");
  expect("{}", "no \"messages\"");
  expect(R"({"messages": {}})", "expected a list of messages");
  expect(R"({"messages": [], "model": "x"})", "'model'");
  expect("[1]", "messages[0] is");
  expect("[{}]", "messages[0] has no \"role\"");
  expect(R"([{"role": "nobody", "content": ""}])",
         "messages[0].role: 'nobody' is unknown, expected system, user, assistant or tool");
  expect(R"([{"role": "user"}])", "no \"content\"");
  expect(R"([{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content[0] has no \"text\"");
  expect(R"([{"role": "user", "content": []}])", "messages[0].content is a list");
  expect(R"([{"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}])", "content[0].type is 'refusal'");
  expect(R"([{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": 1}]}])", "cache_control is 1");
  expect(R"([{"role": "user", "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": 1}]}])",
         "prompt_cache_breakpoint is 1");
  expect(R"([{"role": "system", "content": "a", "cache_control": 1}])", "messages[0].cache_control is 1");
  expect(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])",
         "content[0].type is 'image_url', expected \"text\"");
  expect(R"([{"role": "user", "content": "", "tool_calls": [{"name": "f"}]}])", "'tool_calls'");
  expect(R"([{"role": "user", "content": "", "verbatim": "x"}])", "'verbatim'");
  expect(R"([{"role": "user", "content": "", "images": [""]}])", "'images'");
  expect(R"([{"role": "user", "content": "", "refusal": ""}])", "'refusal'");
  expect(R"([{"role": "user", "content": ""}, {"role": "tool", "content": ""}])", "messages[1], of the tool");
  expect(R"([{"role": "assistant", "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": ""},
             {"role": "user", "content": ""}, {"role": "tool", "content": ""}])",
         "messages[3], of the tool");
  expect(R"([{"role": "assistant", "tool_calls": {}}])", "expected a list of calls");
  expect(R"([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": 1}]}])",
         "tool_calls[0].arguments is 1, expected a JSON object, or text");
  expect(R"([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": [1]}]}])",
         "expected a JSON object, or text");
  expect(R"([{"role": "assistant", "content": "a", "refusal": "b"}])", "messages[0].refusal is \"b\", expected none");
  expect(R"([{"role": "assistant", "tool_calls": [{"function": {"name": 1}}]}])", "function.name is");
  expect(std::string(100'000, '['), "nested too deeply");
}

TEST(MessageJson, ToolsAreReadWithAllThatIsInThem) {
  const std::string list = R"([{"type": "function", "function": {"name": "f", "strict": true, "z": {}, "a": "北京"}}])";
  EXPECT_EQ(parse_tools(list, "t"), list);
  EXPECT_EQ(parse_tools("{\"tools\": " + list + "}", "t"), list);
  EXPECT_EQ(parse_tools(R"([ {"name":"f","parameters":{}} ])", "t"), R"([{"name": "f", "parameters": {}}])");
}

TEST(MessageJson, ErrorsNameTheInvalidTool) {
  const auto expect = [](const std::string& json, const std::string& part) {
    const std::string message = error_of_tools(json);
    EXPECT_TRUE(message.starts_with("tools.json: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << json << "\n" << message;
  };
  expect("x", "not valid JSON");
  expect("3", "expected a list of functions");
  expect("{}", "no \"tools\"");
  expect("[1]", "[0] is");
  expect("[{}]", "no \"name\"");
  expect(R"([{"type": "retrieval"}])", "'retrieval'");
  expect(R"([{"type": "function", "name": "f"}])", "no \"function\"");
  expect(R"([{"function": {"name": ""}}])", "name is empty");
  expect(R"([{"name": "f", "parameters": []}])", "JSON schema");
  expect(R"([{"name": "f", "description": 1}])", "description is");
}

TEST(MessageJson, TemplatesSeeArgumentsAsObjectsAndVerbatimTextsAsTheContent) {
  SavedConversation conversation = a_conversation();
  EXPECT_NE(rendered_messages(conversation.messages).find(R"("arguments": {"city": "北京"})"), std::string::npos);
  conversation.messages[2].verbatim = "<think>\n嗯\n</think>";
  EXPECT_NE(
      rendered_messages(conversation.messages).find(R"({"role": "assistant", "content": "<think>\n嗯\n</think>"})"),
      std::string::npos);
}

TEST(MessageJson, TooManyMessagesAreRejected) {
  const auto conversation = [](std::size_t count) {
    std::string json;
    for (std::size_t i = 0; i < count; ++i) json += (i > 0 ? "," : "") + std::string(R"({"role":"user","content":""})");
    return "[" + json + "]";
  };
  EXPECT_EQ(parse_conversation(conversation(max_messages), "a").messages.size(), max_messages);
  EXPECT_EQ(error_of_conversation(conversation(max_messages + 1)),
            "chat.json: messages are 65537, expected at most 65536");
}

}  // namespace
}  // namespace minimind
