#include "runtime/answer_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/tool_call.h"

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

// Pieces of one thought or text are joined: where the stream is cut must not matter.
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

TEST(AnswerParser, HoldsBackWhatMayBeginATag) {
  AnswerParser parser(ThinkState::none);
  Events events;
  parser.push("a <tool", events);
  EXPECT_EQ(events, Events{answer("a")});
  parser.push("box>", events);
  EXPECT_EQ(events, (Events{answer("a"), answer(" <toolbox>")}));
}

TEST(AnswerParser, ThoughtsAreSplitFromTheAnswer) {
  expect("<think>\n嗯,\n\n好。\n</think>\n\n你好!", {thought("嗯,\n\n好。"), answer("你好!")});
  expect(" \n<think>a</think>  b", {thought("a"), answer("  b")});
  expect("嗯,好。\n</think>\n\n你好!\n", {thought("嗯,好。"), answer("你好!\n")}, ThinkState::open);
  expect("<think>a</think>\n<think>\nb\n</think>c", {thought("a\n\nb"), answer("c")}, ThinkState::closed);
}

TEST(AnswerParser, AThoughtOfWhiteSpaceIsNotShown) {
  expect("<think>\n\n</think>\n\n你好", {answer("你好")});
  expect("\n \n</think>\n\n你好", {answer("你好")}, ThinkState::open);
  expect("<think></think>", {});
  expect("\n\n", {}, ThinkState::open);
}

TEST(AnswerParser, LineFeedsBehindAClosedThoughtAreNotTheAnswers) {
  expect("\n\n你好", {answer("你好")}, ThinkState::closed);
  expect("  你好", {answer("  你好")}, ThinkState::closed);
}

TEST(AnswerParser, AThoughtThatIsNeverClosedIsAThought) {
  expect("嗯\n", {thought("嗯")}, ThinkState::open);
  expect("<think>\n嗯 </thin", {thought("嗯 </thin")});
}

TEST(AnswerParser, TagsOfThoughtsBehindTextAreText) {
  expect("use <think> and </think>", {answer("use <think> and </think>")});
  expect("</think>\n\na", {answer("</think>\n\na")});
  expect("<thin", {answer("<thin")});
}

TEST(AnswerParser, CallsAreParsed) {
  expect("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"北京\", \"days\":3}}\n</tool_call>",
         {call("get_weather", R"({"city": "北京", "days": 3})")});
  expect(R"(<tool_call>{"name": "a", "arguments": "{\"b\": 1}"}</tool_call>)", {call("a", R"({"b": 1})")});
  expect(R"(<tool_call>{"name": "now"}</tool_call>)", {call("now", "{}")});
}

TEST(AnswerParser, SeveralCallsWithTextAroundThem) {
  expect(
      "<think>\n查\n</think>\n\n我来查。\n<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"b\", \"arguments\": {}}\n</tool_call>\n好了",
      {thought("查"), answer("我来查。"), call("a", "{}"), call("b", "{}"), answer("\n好了")});
}

TEST(AnswerParser, WhatIsNoCallIsHandedOutAsItStands) {
  for (const std::string body : {"", "\n", "get_weather(北京)", "[]", "{\"name\": 1}", "{\"name\": \"\"}",
                                 "{\"arguments\": {}}", "{\"name\": \"a\", \"arguments\": [1]}",
                                 "{\"name\": \"a\", \"arguments\": \"x\"}", "{\"name\": \"a\", \"arguments\": {}"}) {
    expect("<tool_call>" + body + "</tool_call>", {no_call(body)});
    expect("<tool_call>" + body, {no_call(body)});
  }
}

TEST(AnswerParser, ACallThatIsWholeNeedsNoEnd) {
  expect("<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n", {call("a", "{}")});
}

TEST(AnswerParser, CallsInThoughtsAreThoughts) {
  expect("<think><tool_call>{}</tool_call></think>b", {thought("<tool_call>{}</tool_call>"), answer("b")});
}

TEST(AnswerParser, DeepJsonIsNoCall) {
  const std::string deep = std::string(100'000, '[');
  expect("<tool_call>" + deep + "</tool_call>", {no_call(deep)});
}

TEST(ThinkState, IsReadFromTheEndOfThePrompt) {
  EXPECT_EQ(think_state("<|im_start|>assistant\n<think>\n"), ThinkState::open);
  EXPECT_EQ(think_state("<|im_start|>assistant\n<think>\n\n</think>\n\n"), ThinkState::closed);
  EXPECT_EQ(think_state("<think> a<|im_end|>\n<|im_start|>assistant\n"), ThinkState::none);
  EXPECT_EQ(think_state(""), ThinkState::none);
}

}  // namespace
}  // namespace minimind
