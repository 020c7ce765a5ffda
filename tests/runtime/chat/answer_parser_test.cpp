#include "runtime/chat/answer_parser.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/cpu_seconds.h"

namespace minimind {
namespace {

using Kind = AnswerEvent::Kind;
using Events = std::vector<AnswerEvent>;

AnswerEvent thought(const std::string& text) {
  return {.kind = Kind::thought, .text = text, .call = {}};
}
AnswerEvent answer(const std::string& text) {
  return {.kind = Kind::text, .text = text, .call = {}};
}
AnswerEvent no_call(const std::string& text) {
  return {.kind = Kind::not_a_call, .text = text, .call = {}};
}
AnswerEvent call(const std::string& name, const std::string& arguments) {
  return {.kind = Kind::tool_call, .text = "", .call = {.id = "", .name = name, .arguments = arguments}};
}

// Pieces of one thought or text are joined: the cuts of the stream must not matter.
Events joined(const Events& events) {
  Events result;
  for (const AnswerEvent& event : events) {
    const bool streamed = event.kind == Kind::thought || event.kind == Kind::text;
    if (streamed && !result.empty() && result.back().kind == event.kind) {
      result.back().text += event.text;
    } else {
      result.push_back(event);
    }
  }
  return result;
}

Events parsed(const std::string& text, std::size_t piece, ThinkState state) {
  AnswerParser parser(state);
  Events events;
  for (std::size_t at = 0; at < text.size(); at += piece) parser.push(text.substr(at, piece), events);
  parser.finish(events);
  return joined(events);
}

void expect(const std::string& text, const Events& wanted, ThinkState state = ThinkState::none) {
  for (const std::size_t piece : {1, 2, 3, 5, 7, 1000}) {
    EXPECT_EQ(parsed(text, piece, state), wanted) << text << "\nin pieces of " << piece;
  }
}

// The events if the text ends for another reason than the model's.
Events cut(const std::string& text) {
  AnswerParser parser(ThinkState::none);
  Events events;
  parser.push(text, events);
  const std::size_t before = events.size();
  const bool is_cut = parser.take_cut_call(events);
  EXPECT_EQ(is_cut, events.size() > before) << text;
  parser.finish(events);
  return joined(events);
}

Message message_of(Events events) {
  Message message;
  std::size_t calls = 1;
  for (AnswerEvent& event : events) add_event(event, message, calls);
  return message;
}

TEST(AnswerParser, ArgumentsOfCallsComeInPieces) {
  const std::string first = R"({"a": "} \" ]", "b": [1, {}]})", second = "{}";
  const auto text = [](const std::string& name, const std::string& arguments) {
    return R"(<tool_call>{"name": ")" + name + R"(", "arguments": )" + arguments + "}</tool_call>";
  };
  const std::string whole = text("f", first) + "\n" + text("g", second);
  for (const std::size_t piece : {1, 2, 3, 5, 7, 1000}) {
    AnswerParser parser(ThinkState::none, true);
    Events events;
    std::size_t before_end = 0;
    for (std::size_t at = 0; at < whole.size(); at += piece) {
      parser.push(whole.substr(at, piece), events);
      if (at < text("f", first).size() - 20) before_end = events.size();
    }
    parser.finish(events);
    if (piece < 10) {
      EXPECT_GT(before_end, 3U) << piece;
    }
    const Message message = message_of(events);
    EXPECT_EQ(message.content, "");
    ASSERT_EQ(message.tool_calls.size(), 2U) << piece;
    EXPECT_EQ(message.tool_calls[0].name + message.tool_calls[0].arguments, "f" + first) << piece;
    EXPECT_EQ(message.tool_calls[1].name + message.tool_calls[1].arguments, "g" + second) << piece;
  }
  AnswerParser parser(ThinkState::none, true);
  Events events;
  parser.push(R"(<tool_call>{"name": "f", "arguments": {"a": "x)", events);
  parser.push("y", events);
  EXPECT_TRUE(parser.take_cut_call(events));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0], call("f", ""));
  EXPECT_EQ(events[1].text + events[2].text, R"({"a": "xy)");
}

TEST(AnswerParser, ACallThatTurnsOutToBeNoneIsTextAndItsArgumentsAreNeverComplete) {
  const std::string start = R"(<tool_call>{"name": "f", "arguments": {"a": )", end = "</tool_call>";
  for (const char* const rest :
       {R"(1}, "b": 2})", "1}} ", "x}}", R"(1}}")", R"("<"}})", "<b>}}", "1}", R"("\u12"}})"}) {
    const std::string text = "so " + start + rest + end + " and so on";
    AnswerParser parser(ThinkState::none, true);
    Events events;
    for (const char c : text) parser.push({&c, 1}, events);
    parser.finish(events);
    std::string arguments;
    std::size_t broken = 0;
    for (const AnswerEvent& event : events) {
      if (event.kind == Kind::arguments) arguments += event.text;
      broken += event.kind == Kind::broken_call ? 1 : 0;
    }
    const Message message = message_of(events), whole = message_of(parsed(text, text.size(), ThinkState::none));
    EXPECT_EQ(message.content, whole.content) << text;
    EXPECT_EQ(message.tool_calls.size(), whole.tool_calls.size()) << text;
    EXPECT_TRUE(arguments.starts_with(R"({"a": )")) << text;
    EXPECT_EQ(broken, whole.tool_calls.empty() ? 1U : 0U) << text;
    if (broken > 0) {
      EXPECT_FALSE(parse_tool_call(R"({"name": "f", "arguments": )" + arguments + "}")) << arguments;
    }
  }
}

TEST(AnswerParser, KeepsTheArgumentsOfACallThatIsCutOff) {
  const std::string arguments = R"({"a": [1, {"b": "}\"</tool_call>"}], "c": "\\"})";
  const std::string start = R"(<tool_call>
{"name": "f", "arguments": )";
  const std::string whole = start + arguments + "}\n</tool_call>";
  const std::size_t name_end = whole.find("f\"") + 2;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string text = whole.substr(0, size);
    if (size < std::string("<tool_call>").size()) {
      EXPECT_EQ(cut(text), text.empty() ? Events{} : Events{answer(text)});
    } else if (size < name_end) {
      EXPECT_EQ(cut(text), Events{no_call(text)});
    } else {
      const std::size_t some = size < start.size() ? 0 : std::min(size - start.size(), arguments.size());
      EXPECT_EQ(cut(text), Events{call("f", arguments.substr(0, some))}) << text;
    }
  }
}

TEST(AnswerParser, AStartOfAnotherFormIsText) {
  for (const char* const body :
       {"", "{", "[", R"({"name": "")", R"({"name": 1)", R"({"nam": "f")", R"({"name": "f", "args": {)",
        R"({"name": "f", "arguments": [)", R"({"name": "f", "arguments": "{\"a)", R"({"name": "f"; )",
        R"({"name": "\ud800", "arguments": {)", R"({"name": "f\)"}) {
    const std::string text = std::string("a <tool_call>") + body;
    EXPECT_EQ(cut(text), (Events{answer("a"), no_call(" <tool_call>" + std::string(body))})) << text;
  }
}

TEST(AnswerParser, PlainTextIsExact) {
  expect("", {});
  expect("\n 你好。\n\n  Hello < 3 \n", {answer("\n 你好。\n\n  Hello < 3 \n")});
  expect(" \n", {answer(" \n")});
}

TEST(AnswerParser, PlainTextIsShownAsItComes) {
  AnswerParser parser(ThinkState::none);
  Events events;
  parser.push("你好", events);
  EXPECT_EQ(events, Events{answer("你好")});
  parser.push(" ", events);
  parser.push("吗", events);
  EXPECT_EQ(events, (Events{answer("你好"), answer(" 吗")}));
}

TEST(AnswerParser, KeepsBackWhatMayBeAPrefixOfATag) {
  AnswerParser parser(ThinkState::none);
  Events events;
  parser.push("a <tool", events);
  EXPECT_EQ(events, Events{answer("a")});
  parser.push("box>", events);
  EXPECT_EQ(events, (Events{answer("a"), answer(" <toolbox>")}));
}

TEST(AnswerParser, ThinkingIsSplitFromTheAnswer) {
  expect("<think>\n嗯,\n\n好。\n</think>\n\n你好!", {thought("嗯,\n\n好。"), answer("你好!")});
  expect(" \n<think>a</think>  b", {thought("a"), answer("  b")});
  expect("嗯,好。\n</think>\n\n你好!\n", {thought("嗯,好。"), answer("你好!\n")}, ThinkState::open);
  expect("<think>a</think>\n<think>\nb\n</think>c", {thought("a\n\nb"), answer("c")}, ThinkState::closed);
}

TEST(AnswerParser, AThoughtOfWhitespaceIsNotShown) {
  expect("<think>\n\n</think>\n\n你好", {answer("你好")});
  expect("\n \n</think>\n\n你好", {answer("你好")}, ThinkState::open);
  expect("<think></think>", {});
  expect("\n\n", {}, ThinkState::open);
}

TEST(AnswerParser, LineFeedsThatAnAnswerStartsWithStay) {
  for (const ThinkState state : {ThinkState::none, ThinkState::closed}) {
    expect("\n\n你好", {answer("\n\n你好")}, state);
    expect("  你好", {answer("  你好")}, state);
    expect("\n", {answer("\n")}, state);
  }
}

TEST(AnswerParser, LineFeedsAfterAThoughtOfTheModelSeparate) {
  expect("<think>a</think>\n\n", {thought("a")});
  expect("<think>a</think>\n\n \n你好", {thought("a"), answer(" \n你好")});
  expect("a</think>\n\n\n你好", {thought("a"), answer("你好")}, ThinkState::open);
}

TEST(AnswerParser, AThoughtThatIsNeverClosedIsAThought) {
  expect("嗯\n", {thought("嗯")}, ThinkState::open);
  expect("<think>\n嗯 </thin", {thought("嗯 </thin")});
}

TEST(AnswerParser, ThinkTagsAfterTextAreText) {
  expect("use <think> and </think>", {answer("use <think> and </think>")});
  expect("</think>\n\na", {answer("</think>\n\na")});
  expect("<thin", {answer("<thin")});
}

TEST(AnswerParser, CallsKeepTheCharactersOfTheirArguments) {
  const auto expect_arguments = [](const std::string& members, const std::string& arguments) {
    expect("<tool_call>\n{" + members + "}\n</tool_call>", {call("a", arguments)});
  };
  expect_arguments(R"("name": "a", "arguments": {"city": "北京", "days":3})", R"({"city": "北京", "days":3})");
  expect_arguments(R"("arguments" :{ "x":[1,{"}":"]"}] } , "name":"a")", R"({ "x":[1,{"}":"]"}] })");
  expect_arguments(R"("name": "a", "parameters": {"x": 1})", R"({"x": 1})");
  expect_arguments(R"("name": "a", "arguments": "{\"b\": 1}")", R"({"b": 1})");
  expect_arguments(R"("name": "a")", "{}");
  expect_arguments(R"("n\u0061me": "\u0061", "arguments": {})", "{}");
  for (const std::string value :
       {"-0", "1.50", "1E5", "9223372036854775807", "9223372036854775808", "123456789012345678901234567890",
        R"("\u5317\ud83d\ude00")", R"("\"\\")", R"("</think><tool_call>")", "1, \"x\": 2", "\n null\t"}) {
    expect_arguments("\"name\": \"a\", \"arguments\": {\"x\": " + value + "}", "{\"x\": " + value + "}");
  }
}

TEST(AnswerParser, ACallEndsAfterItsStrings) {
  for (const std::string text : {R"(</tool_call>)", R"(\"</tool_call>\\)", R"(</tool_call></tool_call>)"}) {
    const std::string arguments = "{\"s\": \"" + text + "\"}";
    expect("<tool_call>{\"name\": \"a\", \"arguments\": " + arguments + "}</tool_call>好",
           {call("a", arguments), answer("好")});
    expect("<tool_call>{\"name\": \"a\", \"arguments\": " + arguments + "}", {call("a", arguments)});
  }
}

TEST(AnswerParser, StringsOutsideOfCallsAreIgnored) {
  const std::string good = R"(<tool_call>{"name": "b", "arguments": {"s": "</tool_call>"}}</tool_call>)";
  for (const std::string bad :
       {R"(<tool_call>{"name": "a, "arguments": {}}</tool_call>)", R"(<tool_call>"</tool_call>)",
        R"(<tool_call>{"name": "a", "arguments": {"s": "x</tool_call>)"}) {
    expect(bad, {no_call(bad)});
    expect(bad + "\n好", {no_call(bad), answer("\n好")});
    expect(bad + "\n好\"\n" + good, {no_call(bad), answer("\n好\""), call("b", R"({"s": "</tool_call>"})")});
    expect(bad + good, {no_call(bad), call("b", R"({"s": "</tool_call>"})")});
  }
}

TEST(AnswerParser, SeveralCallsWithTextAroundThem) {
  expect(
      "<think>\n查\n</think>\n\n我来查。\n<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"b\", \"arguments\": {}}\n</tool_call>\n好了\n",
      {thought("查"), answer("我来查。"), call("a", "{}"), call("b", "{}"), answer("\n\n\n好了\n")});
  expect("A<tool_call>{\"name\": \"a\"}</tool_call>B", {answer("A"), call("a", "{}"), answer("B")});
  expect(" \n<tool_call>{\"name\": \"a\"}</tool_call>\n \nB ", {call("a", "{}"), answer("B ")});
  expect("A \n<tool_call>{\"name\": \"a\"}</tool_call>\n \n", {answer("A"), call("a", "{}")});
}

TEST(AnswerParser, OtherContentIsVerbatimText) {
  for (const std::string body : {"",
                                 "\n",
                                 "get_weather(北京)",
                                 "[]",
                                 "{}",
                                 "{\"name\": 1}",
                                 "{\"name\": \"\"}",
                                 "{\"arguments\": {}}",
                                 "{\"name\": \"a\", \"arguments\": [1]}",
                                 "{\"name\": \"a\", \"arguments\": null}",
                                 "{\"name\": \"a\", \"arguments\": \"x\"}",
                                 "{\"name\": \"a\", \"arguments\": \"\"}",
                                 "{\"name\": \"a\", \"arguments\": {}",
                                 "{\"name\": \"a\", \"arguments\": {}}}",
                                 "{\"name\": \"a\", \"arguments\": {}, \"id\": 1}",
                                 "{\"name\": \"a\", \"name\": \"a\"}",
                                 "{\"name\": \"a\", \"arguments\": {}, \"arguments\": {}}",
                                 "{\"name\": \"a\", \"arguments\": {}, \"parameters\": {}}",
                                 "[{\"name\": \"a\"}]",
                                 "{\"name\": \"a\"}\n{\"name\": \"b\"}",
                                 "```json\n{\"name\": \"a\"}\n```",
                                 "{\"name\": \"a\", \"arguments\": {\"x\": 1e400}}",
                                 "{\"name\": \"a\", \"arguments\": {\"x\": NaN}}",
                                 "{\"name\": \"a\", \"arguments\": {\"x\": \"\\ud800\"}}"}) {
    expect("<tool_call>" + body + "</tool_call>", {no_call("<tool_call>" + body + "</tool_call>")});
    expect("看 \n<tool_call>" + body + "</tool_call>\n好",
           {answer("看"), no_call(" \n<tool_call>" + body + "</tool_call>"), answer("\n好")});
  }
}

TEST(AnswerParser, ATruncatedCallStaysOpen) {
  const std::string whole = "<tool_call>\n{\"name\": \"a\", \"arguments\": {\"s\": \"</tool_call>\"}}";
  for (std::size_t size = std::string("<tool_call>").size(); size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    std::string shown;
    for (const AnswerEvent& event : parsed(cut, 1, ThinkState::none)) shown += event.text;
    EXPECT_EQ(shown, cut);
  }
  expect(whole, {call("a", "{\"s\": \"</tool_call>\"}")});
  expect("<tool_call>{\"name\": \"a\"}\n</tool_cal", {no_call("<tool_call>{\"name\": \"a\"}\n</tool_cal")});
}

TEST(AnswerParser, CallsInThinkingAreThinking) {
  expect("<think><tool_call>{}</tool_call></think>b", {thought("<tool_call>{}</tool_call>"), answer("b")});
}

TEST(AnswerParser, DeepJsonIsNotACall) {
  const std::string deep = "<tool_call>" + std::string(100'000, '[') + "</tool_call>";
  expect(deep, {no_call(deep)});
}

TEST(AnswerParser, CutsAnywhereChangeNothingAndNothingIsLost) {
  const std::vector<std::string> parts = {"<think>",
                                          "</think>",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "<tool",
                                          "</tool_c",
                                          "_call>",
                                          "<th",
                                          "ink>",
                                          "\n",
                                          "\n\n",
                                          " ",
                                          "\"",
                                          "\\",
                                          "{\"name\": \"a\", \"arguments\": {}}",
                                          "{\"name\": \"b\", \"arguments\": {\"s\": \"",
                                          "\"}}",
                                          "你好",
                                          "a"};
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  std::size_t exact = 0;
  for (unsigned i = 0; i < cases(20'000); ++i) {
    std::string text;
    for (std::size_t count = below(12) + 1; count > 0; --count) text += parts[below(parts.size())];
    const ThinkState state = std::array{ThinkState::none, ThinkState::open, ThinkState::closed}[below(3)];
    const Events whole = parsed(text, text.size(), state);
    AnswerParser parser(state);
    Events cut;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = below(9) + 1;
      parser.push(text.substr(at, size), cut);
      at += size;
    }
    parser.finish(cut);
    ASSERT_EQ(joined(cut), whole) << testing::PrintToString(text);
    AnswerParser streaming(state, true);
    Events streamed;
    for (const char c : text) streaming.push({&c, 1}, streamed);
    streaming.finish(streamed);
    const Message a = message_of(streamed), b = message_of(whole);
    ASSERT_EQ(a.content, b.content) << testing::PrintToString(text);
    ASSERT_EQ(a.reasoning, b.reasoning) << testing::PrintToString(text);
    ASSERT_EQ(a.tool_calls, b.tool_calls) << testing::PrintToString(text);
    std::string shown;
    bool plain = state != ThinkState::open && text.find("<think>") == std::string::npos;
    for (const AnswerEvent& event : whole) {
      plain = plain && event.kind != Kind::tool_call;
      shown += event.text;
    }
    if (!plain) continue;
    ++exact;
    ASSERT_EQ(shown, text);
  }
  EXPECT_GT(exact, cases(1000));
}

TEST(AnswerParser, TakesTimeLinearInTheAnswer) {
  const double start = cpu_seconds();
  for (const char* const part :
       {"<tool_call>", "<tool_call></tool_call>", "<tool_call>\"</tool_call>", "<tool_call>\"\\\"</tool_call>",
        "<tool_call>[\"\", \"</tool_call>", "<tool_call>{\"name\": \"f\"}</tool_call>", "<think>", "</think>",
        "<think></think>", "<think>a</think>", "</tool_call>", "<tool_call>\n\"</tool_call>", "\n", "<", "\"", "\\"}) {
    std::string text;
    while (text.size() < 1'000'000) text += part;
    for (const ThinkState state : {ThinkState::none, ThinkState::open}) {
      Message message;
      std::size_t next_call = 1;
      for (AnswerEvent& event : parsed(text, text.size(), state)) add_event(event, message, next_call);
    }
  }
  EXPECT_LT(cpu_seconds() - start, 4 * most_cpu_seconds);
}

TEST(ThinkState, IsReadFromTheEndOfThePrompt) {
  EXPECT_EQ(think_state("<|im_start|>assistant\n<think>\n"), ThinkState::open);
  EXPECT_EQ(think_state("<|im_start|>assistant\n<think>\n\n</think>\n\n"), ThinkState::closed);
  EXPECT_EQ(think_state("<think> a<|im_end|>\n<|im_start|>assistant\n"), ThinkState::none);
  EXPECT_EQ(think_state(""), ThinkState::none);
}

}  // namespace
}  // namespace minimind
