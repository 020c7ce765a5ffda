#include "runtime/chat/conversation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "runtime/chat/message_json.h"
#include "tests/support/small_chat.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr const char* weather =
    R"("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"北京\"}}\n</tool_call>")";

ConversationOptions plain(std::size_t max_tokens = 20) {
  ConversationOptions options;
  options.generate.max_tokens = max_tokens;
  return options;
}

std::vector<Role> roles_of(const Conversation& conversation) {
  std::vector<Role> roles;
  for (const Message& message : conversation.messages()) roles.push_back(message.role);
  return roles;
}

// What the model was given and wrote so far, as text.
std::string text_in(const SmallChat& chat) {
  return chat.tokenizer.decode(chat.conversation.state().tokens, false);
}

TEST(Conversation, AnswersAreStreamedAndKept) {
  SmallChat chat(Family::v3, 2048, answers_of(R"("你好!")"));
  std::string streamed;
  AnswerListener listener;
  listener.on_event = [&](const AnswerEvent& event) { streamed += event.text; };
  const Answer answer = chat.conversation.ask("hi", listener, chat.interrupted);
  EXPECT_EQ(answer.message.content, "你好!");
  EXPECT_EQ(streamed, "你好!");
  EXPECT_EQ(answer.finish_reason, FinishReason::stop);
  EXPECT_EQ(text_in(chat), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n你好!");
  EXPECT_EQ(chat.conversation.messages(), (std::vector<Message>{{.role = Role::user, .content = "hi"},
                                                                {.role = Role::assistant, .content = "你好!"}}));
}

// MiniMind's scripts give the text of a conversation to the tokenizer, however the model spelled its answers.
TEST(Conversation, EncodesAPromptAsAWholeRegardlessOfSampledTokens) {
  for (const Family family : {Family::v1, Family::v2, Family::v3}) {
    // "the user" is 2 words of the vocabulary with a space between; a random model spells it in any way it likes.
    ConversationOptions options = answers_of(R"("the user, the user " [a-z]{5} "。")");
    options.generate.sampling.temperature = 5;
    SmallChat chat(family, 2048, options);
    chat.conversation.set_system("be the user");
    std::size_t prompt_before = 0;
    bool spelled_otherwise = false;
    for (int turn = 0; turn < 8; ++turn) {
      const Answer answer = chat.ask("tell the user " + std::to_string(turn));
      std::vector<std::int32_t> tokens = chat.conversation.state().tokens;
      spelled_otherwise |= chat.tokenizer.encode(text_in(chat)) != tokens;
      tokens.resize(answer.stats.prompt_tokens);
      EXPECT_EQ(tokens, chat.tokenizer.encode(chat.tokenizer.decode(tokens, false))) << name_of(family);
      EXPECT_GE(answer.stats.reused_tokens, prompt_before) << name_of(family) << ", turn " << turn;
      EXPECT_EQ(answer.stats.reused_tokens + answer.stats.computed_tokens, answer.stats.prompt_tokens);
      prompt_before = answer.stats.prompt_tokens;
    }
    EXPECT_TRUE(spelled_otherwise) << "the model spelled as encode() does";
  }
}

TEST(Conversation, TheTokenizersPostProcessorAddsToPrompts) {
  TokenizerData data = chat_tokenizer_data();
  data.before_text = {3};
  data.after_text = {4, 4};
  SmallChat chat(Tokenizer(data), ChatTemplate::of_family(Family::v3, {}), 2048, plain(3));
  for (int turn = 0; turn < 2; ++turn) {
    const Answer answer = chat.ask("hi");
    std::vector<std::int32_t> tokens = chat.conversation.state().tokens;
    tokens.resize(answer.stats.prompt_tokens);
    const std::string text = chat.tokenizer.decode(tokens, false);
    EXPECT_TRUE(text.starts_with("<s><|im_start|>user\nhi<|im_end|>")) << text;
    EXPECT_TRUE(text.ends_with("<think>\n\n</think>\n\n</s></s>")) << text;
  }
}

TEST(Conversation, HistoryLimitsTheEarlierTurnsInThePrompt) {
  for (const std::size_t history : {0u, 1u, 2u}) {
    ConversationOptions options = answers_of(R"("ok")");
    options.history = history;
    SmallChat chat(Family::v3, 2048, options);
    chat.conversation.set_system("be the user");
    std::size_t drops = 0;
    AnswerListener listener;
    listener.on_dropped = [&](std::size_t) { ++drops; };
    for (int turn = 0; turn < 5; ++turn) {
      const Answer answer = chat.conversation.ask("question " + std::to_string(turn), listener, chat.interrupted);
      EXPECT_EQ(answer.dropped_turns, 0u) << "not for want of room";
      EXPECT_NE(text_in(chat).find("be the user"), std::string::npos);
      for (int other = 0; other <= turn; ++other) {
        const bool shown = text_in(chat).find("question " + std::to_string(other)) != std::string::npos;
        EXPECT_EQ(shown, other + static_cast<int>(history) >= turn) << history << ": " << other << " in " << turn;
      }
    }
    EXPECT_EQ(drops, 0u);
    EXPECT_EQ(chat.conversation.turns(), 5u) << "all of them are kept";
    EXPECT_EQ(chat.conversation.dropped_turns(), 4 - history);
    const std::string last_prompt = text_in(chat);
    chat.conversation.regenerate({}, chat.interrupted);
    EXPECT_EQ(text_in(chat), last_prompt);
    chat.conversation.undo();
    EXPECT_EQ(chat.conversation.dropped_turns(), 3 - history);
    EXPECT_EQ(chat.conversation.state().dropped_turns, 0u) << "a session may be continued with another history";
  }
}

TEST(Conversation, HistoryDoesNotPartACallFromItsResult) {
  ConversationOptions options = answers_of(weather);
  options.history = 0;
  SmallChat chat(Family::v3, 2048, options);
  chat.ask("one");
  chat.ask("two");
  chat.conversation.give_results({"晴"}, {}, chat.interrupted);
  const std::string text = text_in(chat);
  EXPECT_EQ(text.find("one"), std::string::npos);
  EXPECT_NE(text.find("two"), std::string::npos);
  EXPECT_LT(text.find("weather"), text.find("<tool_response>\n晴"));
}

TEST(Conversation, AFullContextLosesMoreThanHistoryDoes) {
  ConversationOptions options = plain(10);
  options.history = 100;
  SmallChat chat(Family::v3, 400, options);
  for (int turn = 0; turn < 12; ++turn) chat.ask("message " + std::to_string(turn));
  EXPECT_GT(chat.conversation.state().dropped_turns, 0u);
  EXPECT_EQ(chat.conversation.dropped_turns(), chat.conversation.state().dropped_turns);
}

TEST(Conversation, ThePromptIsWhatTheTemplateMakesOfTheMessages) {
  for (const Family family : {Family::v1, Family::v2, Family::v3}) {
    SmallChat chat(family, 2048, plain());
    for (int turn = 0; turn < 3; ++turn) chat.ask("the user");
    ChatInput input;
    std::vector<Message> messages = chat.conversation.messages();
    const std::string last = messages.back().content;
    messages.pop_back();
    input.messages = template_messages(messages);
    input.add_generation_prompt = true;
    const std::string prompt = chat.chat_template.render(input, 0).bytes;
    EXPECT_TRUE(text_in(chat).starts_with(prompt)) << name_of(family) << "\n" << text_in(chat);
  }
}

TEST(Conversation, ThinkingUnknownToTheTemplateStaysInTheText) {
  SmallChat chat(Family::v2, 2048, answers_of(R"("<think>\n嗯。\n</think>\n\n你好!")"));
  chat.conversation.set_think(true);
  const Answer answer = chat.ask("hi");
  EXPECT_EQ(answer.message.reasoning, "嗯。");
  EXPECT_EQ(answer.message.content, "你好!");
  EXPECT_EQ(chat.conversation.messages().back().verbatim, "<think>\n嗯。\n</think>\n\n你好!");
  EXPECT_GE(chat.ask("again").stats.reused_tokens, answer.stats.prompt_tokens);
  EXPECT_NE(text_in(chat).find("assistant\n<think>\n嗯。\n</think>\n\n你好!<|im_end|>"), std::string::npos)
      << text_in(chat);
}

TEST(Conversation, EarlierAnswersAreTheModelsText) {
  SmallChat chat(Family::v2, 2048, answers_of(R"("你好!")"));
  chat.conversation.set_think(false);
  chat.ask("hi");
  chat.ask("again");
  EXPECT_NE(text_in(chat).find("<|im_start|>assistant\n你好!<|im_end|>"), std::string::npos) << text_in(chat);
}

TEST(Conversation, UnfinishedThinkingIsVerbatimInTheTemplate) {
  SmallChat chat(Family::v3, 2048, plain(12));
  chat.conversation.set_think(true);
  const Answer answer = chat.ask("hi");
  EXPECT_TRUE(text_in(chat).find("assistant\n<think>\n") != std::string::npos);
  ASSERT_TRUE(answer.message.reasoning.has_value());
  EXPECT_EQ(answer.message.content, "");
  ASSERT_TRUE(chat.conversation.messages().back().verbatim.has_value());
  EXPECT_NE(chat.conversation.messages().back().verbatim->find(*answer.message.reasoning), std::string::npos);
  chat.ask("again");
  EXPECT_NE(text_in(chat).find("<think>\n\n</think>\n\n"), std::string::npos) << text_in(chat);
}

// Qwen3's template omits the thinking of older answers.
TEST(Conversation, TemplatesMayDropThinking) {
  const std::string source = R"({%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\n' -}}
{%- set content = m.content -%}
{%- if '</think>' in content %}{%- set content = content.split('</think>')[-1].lstrip('\n') %}{%- endif -%}
{%- if m.reasoning_content and loop.last %}{{- '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif -%}
{{- content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif -%})";
  SmallChat chat(Tokenizer(chat_tokenizer_data()), ChatTemplate(source, "test", {}), 2048,
                 answers_of(R"("<think>\n嗯。\n</think>\n\n你好!")"));
  chat.ask("hi");
  EXPECT_EQ(chat.conversation.messages().back().verbatim, std::nullopt);
  const Answer answer = chat.ask("again");
  EXPECT_GT(answer.stats.reused_tokens, 10u);
  EXPECT_EQ(text_in(chat).find("hi<|im_end|>\n<|im_start|>assistant\n你好!<|im_end|>\n") == std::string::npos, false)
      << text_in(chat);
}

TEST(Conversation, CallsAreGivenToTheTemplateAsCallsAndTheirResultsFollow) {
  for (const Family family : {Family::v2, Family::v3}) {
    SmallChat chat(family, 2048, answers_of(weather));
    chat.conversation.set_tools(parse_tools(R"([{"type": "function", "function": {"name": "weather"}}])", "test"));
    const Answer answer = chat.ask("北京天气?");
    const std::vector<ToolCall> calls = {{.id = "call_1", .name = "weather", .arguments = R"({"city": "北京"})"}};
    EXPECT_EQ(answer.message.tool_calls, calls);
    EXPECT_EQ(answer.message.content, "");
    EXPECT_EQ(chat.conversation.messages().back().verbatim, std::nullopt);
    const std::span<const ToolCall> pending = chat.conversation.pending_calls();
    EXPECT_EQ(std::vector(pending.begin(), pending.end()), calls);
    // Not copied: each of thousands of results asks for them.
    EXPECT_EQ(pending.data(), chat.conversation.messages().back().tool_calls.data());
    const Answer next = chat.conversation.give_results({"晴"}, {}, chat.interrupted);
    EXPECT_GE(next.stats.reused_tokens, answer.stats.prompt_tokens);
    EXPECT_NE(text_in(chat).find("<tool_response>\n晴\n</tool_response>"), std::string::npos);
    EXPECT_EQ(next.message.tool_calls.at(0).id, "call_2");
    EXPECT_EQ(chat.conversation.turns(), 1u);
  }
}

TEST(Conversation, TheMessagesOfOneResultLeaveTheNextCallPending) {
  SmallChat chat(Family::v3, 2048);
  ConversationState state;
  state.messages = {{.role = Role::user, .content = "?"},
                    {.role = Role::assistant, .tool_calls = {{.id = "a", .name = "f"}, {.id = "b", .name = "g"}}},
                    {.role = Role::tool, .content = "1", .tool_call_id = "a"},
                    {.role = Role::tool, .content = "2", .tool_call_id = "a"}};
  chat.conversation.restore(state);
  ASSERT_EQ(chat.conversation.pending_calls().size(), 1u);
  EXPECT_EQ(chat.conversation.pending_calls().front().name, "g");
  for (Message& result : std::span(state.messages).last(2)) result.tool_call_id.clear();
  chat.conversation.restore(state);
  EXPECT_TRUE(chat.conversation.pending_calls().empty()) << "by their number alone";
}

TEST(Conversation, CallsThatAreSpelledInTheModelsOwnWayStayLikeThat) {
  SmallChat chat(Family::v3, 2048,
                 answers_of(R"("<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":1.50}}</tool_call>")"));
  EXPECT_EQ(chat.ask("?").message.tool_calls.at(0).arguments, R"({"a":1.50})");
  chat.conversation.give_results({"1"}, {}, chat.interrupted);
  EXPECT_NE(text_in(chat).find(R"({"name":"now","arguments":{"a":1.50}})"), std::string::npos) << text_in(chat);
}

TEST(Conversation, ArgumentsOfASavedConversationKeepTheirSpelling) {
  const std::string arguments = R"({"a":1.50, "a": -0,"b":"\\u5317", "c": 100000000000000000000})";
  ConversationState state;
  state.messages = {{.role = Role::user, .content = "?"},
                    {.role = Role::assistant, .tool_calls = {{.id = "1", .name = "f", .arguments = arguments}}}};
  for (const Family family : {Family::v2, Family::v3}) {
    SmallChat chat(family, 2048, plain());
    chat.conversation.restore(state);
    chat.conversation.give_results({"1"}, {}, chat.interrupted);
    EXPECT_NE(text_in(chat).find("\"arguments\": " + arguments + "}\n</tool_call>"), std::string::npos)
        << text_in(chat);
  }
  // A template that takes objects alone gets objects.
  SmallChat chat(
      Tokenizer(chat_tokenizer_data()),
      ChatTemplate("{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}"
                   "{% endfor %}{{ m.content }}{% endfor %}",
                   "test", {}),
      2048, plain());
  chat.conversation.restore(state);
  chat.conversation.give_results({"1"}, {}, chat.interrupted);
  EXPECT_TRUE(text_in(chat).starts_with(R"(?{"a": 0, "b": "\\u5317", "c": 1e+20}1)")) << text_in(chat);
}

TEST(Conversation, OpenTagsAreNotClosed) {
  const std::string call = R"(<tool_call>\n{\"name\": \"a\", \"arguments\": {}})";
  for (const std::string& written : {call, call.substr(0, call.size() - 1), "<tool_call>" + call.substr(0, 20)}) {
    for (const Family family : {Family::v2, Family::v3}) {
      SmallChat chat(family, 2048, answers_of("\"" + written + "\""));
      const Answer answer = chat.ask("?");
      EXPECT_EQ(answer.message.content.find("</"), std::string::npos) << answer.message.content;
      EXPECT_EQ(answer.message.tool_calls.size(), written == call ? 1u : 0u);
      chat.ask("again");
      EXPECT_EQ(text_in(chat).find("</tool_call>"), std::string::npos) << text_in(chat);
    }
  }
  SmallChat chat(Family::v2, 2048, answers_of(R"("<think>\n嗯")"));
  EXPECT_EQ(chat.ask("?").message.reasoning, "嗯");
  chat.ask("again");
  EXPECT_EQ(text_in(chat).find("</think>"), std::string::npos) << text_in(chat);
}

// As tokens of some vocabularies are, which are otherwise omitted from texts.
TEST(Conversation, TagsThatAreSpecialTokensAreTagsToo) {
  ConversationOptions options;
  options.generate.max_tokens = 3;
  SmallChat chat(Tokenizer(chat_tokenizer_data(true)), ChatTemplate::of_family(Family::v2, {}), 2048, options);
  const auto tag = chat.tokenizer.id_of("<think>");
  options.generate.sampling.logit_bias = {{.token = tag.value(), .bias = 1000}};
  Conversation conversation(chat.forward, chat.context, chat.tokenizer, chat.chat_template, options);
  const Answer answer = conversation.ask("hi", {}, chat.interrupted);
  EXPECT_EQ(answer.message.content, "");
  EXPECT_EQ(answer.message.reasoning, "<think><think>");
}

TEST(Conversation, OtherTagsStayInTheContent) {
  SmallChat chat(Family::v3, 2048, answers_of(R"("看\n<tool_call>\nweather(北京)\n</tool_call>")"));
  const Answer answer = chat.ask("?");
  EXPECT_EQ(answer.message.content, "看\n<tool_call>\nweather(北京)\n</tool_call>");
  EXPECT_TRUE(chat.conversation.pending_calls().empty());
}

TEST(Conversation, AnAnswerIsExactAtAnyStart) {
  const std::string text = R"("\n\n 你好\n\n<tool_call>{}</tool_call> \n")";
  for (const Family family : {Family::v2, Family::v3}) {
    SmallChat chat(family, 2048, answers_of(text));
    std::string written, shown;
    const AnswerListener listener{
        [&](const AnswerEvent& event) { shown += event.text; }, {}, [&](std::string_view piece) { written += piece; }};
    const Answer answer = chat.conversation.ask("?", listener, chat.interrupted);
    EXPECT_EQ(answer.message.content, "\n\n 你好\n\n<tool_call>{}</tool_call> \n");
    EXPECT_EQ(written, answer.message.content);
    EXPECT_EQ(shown, answer.message.content);
  }
}

TEST(Conversation, AnEmptyPromptIsAnError) {
  SmallChat chat(Tokenizer(chat_tokenizer_data()), ChatTemplate("{{ messages[-1].content }}", "test", {}), 2048,
                 plain());
  EXPECT_NE(error_of([&] { chat.ask(""); }).find("empty prompt"), std::string::npos);
  EXPECT_FALSE(chat.ask("a").withdrawn);
  SmallChat with_template(Family::v3, 2048, plain());
  EXPECT_FALSE(with_template.ask("").withdrawn);
}

TEST(Conversation, TagsInPlainAnswersMeanNothing) {
  ConversationOptions options = answers_of(R"gbnf("[\"a  <tool_call>\", \"<think>\", \" </tool_call> b\"]")gbnf");
  options.plain_answers = true;
  SmallChat chat(Family::v3, 2048, options);
  const Answer answer = chat.ask("?");
  EXPECT_EQ(answer.message.content, R"(["a  <tool_call>", "<think>", " </tool_call> b"])");
  EXPECT_EQ(answer.message.reasoning, std::nullopt);
}

TEST(Conversation, ResultsHaveToFitTheCalls) {
  SmallChat chat(Family::v3, 2048, answers_of(weather));
  EXPECT_THROW(chat.conversation.give_results({"晴"}, {}, chat.interrupted), UsageError);
  chat.ask("?");
  EXPECT_THROW(chat.conversation.give_results({}, {}, chat.interrupted), UsageError);
  EXPECT_THROW(chat.conversation.give_results({"晴", "雨"}, {}, chat.interrupted), UsageError);
  EXPECT_THROW(chat.conversation.give_results({"\xFF"}, {}, chat.interrupted), UsageError);
  EXPECT_EQ(chat.conversation.messages().size(), 2u);
  chat.ask("never mind");
  EXPECT_EQ(chat.conversation.turns(), 2u);
}

TEST(Conversation, UndoTakesTheLastTurnAwayWithAllThatFollowed) {
  SmallChat chat(Family::v3, 2048, answers_of(weather));
  EXPECT_EQ(chat.conversation.undo(), std::nullopt);
  chat.conversation.set_system("s");
  chat.ask("one");
  chat.ask("two");
  chat.conversation.give_results({"晴"}, {}, chat.interrupted);
  EXPECT_EQ(chat.conversation.undo(), "two");
  EXPECT_EQ(roles_of(chat.conversation), (std::vector<Role>{Role::system, Role::user, Role::assistant}));
  EXPECT_EQ(chat.conversation.undo(), "one");
  EXPECT_EQ(roles_of(chat.conversation), std::vector<Role>{Role::system});
  const Answer answer = chat.ask("one");
  EXPECT_EQ(answer.stats.computed_tokens, 1u) << "all of the prompt is still there";
}

TEST(Conversation, RegenerateAnswersTheMessageAgain) {
  ConversationOptions options = plain(30);
  options.generate.sampling.temperature = 2;
  SmallChat chat(Family::v3, 2048, options);
  EXPECT_THROW(chat.conversation.regenerate({}, chat.interrupted), UsageError);
  const std::string first = chat.ask("hi").message.content;
  const Answer again = chat.conversation.regenerate({}, chat.interrupted);
  EXPECT_NE(again.message.content, first);
  EXPECT_EQ(again.stats.computed_tokens, 1u);
  EXPECT_EQ(chat.conversation.messages().size(), 2u);
}

TEST(Conversation, TheSameSeedGivesTheSameConversation) {
  ConversationOptions options = plain(30);
  options.generate.sampling.temperature = 2;
  SmallChat a(Family::v3, 2048, options), b(Family::v3, 2048, options);
  for (SmallChat* const chat : {&a, &b}) {
    chat->ask("hi");
    chat->conversation.regenerate({}, chat->interrupted);
    chat->ask("hi");
  }
  EXPECT_EQ(a.conversation.messages(), b.conversation.messages());
  EXPECT_NE(a.conversation.messages().at(1).content, a.conversation.messages().at(3).content);
}

TEST(Conversation, ResetKeepsTheSystemPrompt) {
  SmallChat chat(Family::v3, 2048, plain());
  chat.conversation.set_system("s");
  chat.ask("one");
  chat.conversation.reset();
  EXPECT_EQ(roles_of(chat.conversation), std::vector<Role>{Role::system});
  EXPECT_EQ(chat.conversation.system(), "s");
  chat.conversation.set_system("t");
  EXPECT_EQ(chat.conversation.system(), "t");
  chat.conversation.set_system(std::nullopt);
  EXPECT_TRUE(chat.conversation.messages().empty());
  EXPECT_THROW(chat.conversation.set_system("\xFF"), UsageError);
}

TEST(Conversation, AnInterruptedAnswerStaysAsFarAsItWent) {
  SmallChat chat(Family::v3, 2048, answers_of(R"("你好,朋友!")"));
  AnswerListener listener;
  std::string shown;
  listener.on_event = [&](const AnswerEvent& event) {
    shown += event.text;
    chat.interrupted = true;
  };
  const Answer answer = chat.conversation.ask("hi", listener, chat.interrupted);
  EXPECT_EQ(answer.finish_reason, FinishReason::interrupted);
  EXPECT_FALSE(answer.withdrawn);
  EXPECT_EQ(answer.message.content, shown);
  EXPECT_EQ(chat.conversation.messages().back().content, shown);
  chat.interrupted = false;
  EXPECT_GE(chat.ask("go on").stats.reused_tokens, answer.stats.prompt_tokens);
  EXPECT_NE(text_in(chat).find("</think>\n\n" + shown + "<|im_end|>"), std::string::npos) << text_in(chat);
}

TEST(Conversation, ATruncatedCharacterAtTheEndIsItsReplacement) {
  SmallChat chat(Family::v3, 2048, answers_of("\"\xE4\xBD\xA0\xE4\xBD\xA0\xE4\xBD\xA0\xE4\xBD\xA0\"", 4));
  chat.ask("hi");
  chat.ask("go on");
  EXPECT_NE(text_in(chat).find("</think>\n\n你\uFFFD<|im_end|>"), std::string::npos) << text_in(chat);
}

TEST(Conversation, AnInterruptBeforeTheAnswerWithdrawsTheQuestion) {
  SmallChat chat(Family::v3, 2048, plain());
  chat.ask("one");
  const auto messages = chat.conversation.messages();
  chat.interrupted = true;
  const Answer answer = chat.ask("two");
  EXPECT_TRUE(answer.withdrawn);
  EXPECT_EQ(chat.conversation.messages(), messages);
  const Answer again = chat.conversation.regenerate({}, chat.interrupted);
  EXPECT_TRUE(again.withdrawn);
  EXPECT_EQ(chat.conversation.messages(), messages) << "the answer that was to be replaced is still there";
  chat.interrupted = false;
  EXPECT_FALSE(chat.ask("two").withdrawn);
}

TEST(Conversation, ErrorsLeaveItAsItWas) {
  const std::string source =
      "{%- for m in messages %}{%- if m.content == 'bad' %}{{ raise_exception('no') }}{% endif %}"
      "{{ '<|im_start|>' + m.content + '<|im_end|>' }}{% endfor %}<|im_start|>";
  SmallChat chat(Tokenizer(chat_tokenizer_data()), ChatTemplate(source, "test", {}), 2048, plain());
  chat.ask("good");
  const auto messages = chat.conversation.messages();
  EXPECT_THROW(chat.ask("bad"), Error);
  EXPECT_THROW(chat.ask("\xFF"), UsageError);
  EXPECT_EQ(chat.conversation.messages(), messages);
}

TEST(Conversation, ALongConversationDropsItsOldestTurnsAndContinues) {
  ConversationOptions options = plain(10);
  SmallChat chat(Family::v3, 400, options);
  chat.conversation.set_system("be the user");
  std::size_t drops = 0, dropped = 0, computed = 0;
  AnswerListener listener;
  listener.on_dropped = [&](std::size_t turns) {
    ++drops;
    dropped += turns;
  };
  constexpr int turns = 300;
  for (int turn = 0; turn < turns; ++turn) {
    const Answer answer = chat.conversation.ask("message " + std::to_string(turn), listener, chat.interrupted);
    EXPECT_LE(answer.stats.prompt_tokens + chat.conversation.reserve(), 400u);
    EXPECT_GT(answer.stats.generated_tokens, 0u);
    computed += answer.stats.computed_tokens;
    EXPECT_TRUE(answer.dropped_turns == 0 || answer.stats.prompt_tokens <= 200);
  }
  EXPECT_EQ(chat.conversation.turns(), std::size_t{turns}) << "what the model forgets is still there to be saved";
  EXPECT_EQ(chat.conversation.dropped_turns(), dropped);
  EXPECT_LT(drops, turns / 3u) << "not at every turn";
  EXPECT_NE(text_in(chat).find("be the user"), std::string::npos);
  EXPECT_EQ(text_in(chat).find("message 1<"), std::string::npos);
  EXPECT_LT(computed, 3 * turns * 45u) << "each turn is about 45 tokens";
}

TEST(Conversation, NoShiftMakesThatAnError) {
  ConversationOptions options = plain(10);
  options.no_shift = true;
  SmallChat chat(Family::v3, 400, options);
  std::string message;
  for (int turn = 0; turn < 20 && message.empty(); ++turn) {
    message = error_of([&] { chat.ask("message " + std::to_string(turn)); });
  }
  EXPECT_NE(message.find("let the oldest turns be dropped"), std::string::npos) << message;
  EXPECT_NE(message.find("context of 400"), std::string::npos) << message;
  EXPECT_EQ(chat.conversation.dropped_turns(), 0u);
  EXPECT_EQ(chat.conversation.messages().back().role, Role::assistant);
}

TEST(Conversation, AMessageThatFitsAloneMayTakeTheReserve) {
  SmallChat chat(Family::v3, 400, plain(1000));
  EXPECT_EQ(chat.conversation.reserve(), 100u);
  chat.ask("one");
  const Answer answer = chat.ask(std::string(320, 'x'));
  EXPECT_EQ(answer.dropped_turns, 1u);
  EXPECT_GT(answer.stats.generated_tokens, 0u);
  EXPECT_EQ(answer.finish_reason, FinishReason::length);
}

TEST(Conversation, AMessageThatDoesNotFitAloneIsAnError) {
  SmallChat chat(Family::v3, 400, plain());
  chat.ask("one");
  const std::string message = error_of([&] { chat.ask(std::string(500, 'x')); });
  EXPECT_NE(message.find("use a larger context"), std::string::npos) << message;
  EXPECT_EQ(chat.conversation.turns(), 1u);
  EXPECT_EQ(chat.conversation.dropped_turns(), 0u);
}

TEST(Conversation, UndoingRestoresDroppedTurns) {
  SmallChat chat(Family::v3, 400, plain(10));
  for (int turn = 0; turn < 12; ++turn) chat.ask("message " + std::to_string(turn));
  EXPECT_GT(chat.conversation.dropped_turns(), 0u);
  while (chat.conversation.undo()) {
    EXPECT_TRUE(chat.conversation.turns() == 0 || chat.conversation.dropped_turns() < chat.conversation.turns());
  }
  EXPECT_EQ(chat.conversation.dropped_turns(), 0u);
}

TEST(Conversation, AGrammarExcludesThinking) {
  SmallChat chat(Family::v3, 2048, answers_of(R"("你好!")"));
  chat.conversation.set_think(true);
  EXPECT_THROW(chat.ask("hi"), UsageError);
  chat.conversation.set_think(false);
  EXPECT_EQ(chat.ask("hi").message.content, "你好!");
}

TEST(Conversation, ContinuesASavedConversation) {
  SmallChat chat(Family::v3, 2048, plain());
  ConversationState state;
  state.messages = {{.role = Role::user, .content = "hi"}};
  chat.conversation.restore(state);
  EXPECT_EQ(chat.conversation.regenerate({}, chat.interrupted).withdrawn, false);
  EXPECT_EQ(chat.conversation.messages().size(), 2u);
  state.messages = {{.role = Role::tool, .content = "hi"}};
  EXPECT_THROW(chat.conversation.restore(state), Error);
}

TEST(Conversation, AGreetingStaysBeforeTheTurns) {
  ConversationOptions options = plain();
  options.history = 0;
  SmallChat chat(Family::v3, 2048, options);
  ConversationState state;
  state.messages = {{.role = Role::assistant, .content = "hi"}};
  chat.conversation.restore(state);
  EXPECT_THROW(chat.conversation.regenerate({}, chat.interrupted), UsageError);
  for (const char* const question : {"a", "b"}) chat.ask(question);
  EXPECT_TRUE(
      text_in(chat).starts_with("<|im_start|>assistant\n<think>\n\n</think>\n\nhi<|im_end|>\n<|im_start|>user\nb<"))
      << text_in(chat);
  EXPECT_EQ(chat.conversation.turns(), 2u);
  chat.conversation.reset();
  EXPECT_EQ(chat.conversation.messages(), state.messages);
}

}  // namespace
}  // namespace minimind
