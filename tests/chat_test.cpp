#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli.h"
#include "tests/pseudo_terminal.h"

namespace minimind {
namespace {

using nlohmann::json;

// The demo, with a template that every message is in and a grammar that decides what is answered.
class Chat : public Cli {
 protected:
  Chat() {
    std::ofstream(path("chat.jinja")) << R"({%- for m in messages -%}
<{{ m.role }}>{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls else '' }}
{% endfor %}{{ tools | tojson if tools else '' }}{{ '<think>\n' if open_thinking else '' }})";
  }

  // Answers with `text` whatever is asked.
  std::string saying(const std::string& text) const {
    std::ofstream(path("answer.gbnf")) << "root ::= " << json(text).dump();
    return "chat" + demo + " --template " + path("chat.jinja") + " --grammar " + path("answer.gbnf") + " ";
  }

  json parsed(const Outcome& outcome) const {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  std::string input(const std::string& text) const {
    std::ofstream(path("in")) << text;
    return " < " + path("in");
  }
};

const std::string call = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"北京\"}}\n</tool_call>";

TEST_F(Chat, TheBundledPoetWritesAPoemOnWhateverItIsTold) {
  const Outcome titled = run("chat --seed 1 -q" + input("你好\n"));
  EXPECT_EQ(titled.status, 0) << titled.err;
  const std::string rendered = "<|im_start|>user\n你好<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(titled.out, run("generate --seed 1 -q" + input(rendered)).out + "\n");
  EXPECT_GT(titled.out.size(), 60u);
}

TEST_F(Chat, OnlyTheAnswerGoesToStandardOutput) {
  const Outcome outcome = run(saying("好") + "-p 你好");
  EXPECT_EQ(outcome.out, "好\n") << outcome.err;
  EXPECT_NE(outcome.err.find("chat template from " + path("chat.jinja")), std::string::npos) << outcome.err;
  EXPECT_EQ(run(saying("好") + "-q -p 你好").err, "");
}

TEST_F(Chat, APipedTextIsOneMessageWithoutItsLastNewline) {
  const Outcome outcome = run(saying("ok") + "--save " + path("c.json") + input("one\ntwo\n\n"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"],
            json::parse(R"([{"role": "user", "content": "one\ntwo\n"}, {"role": "assistant", "content": "ok"}])"));
}

TEST_F(Chat, JsonHasAllOfAnAnswer) {
  const json answer = parsed(run(saying("<think>\nhm\n</think>\n\n好" + call) + "--json -p 你好"));
  EXPECT_EQ(answer["content"], "好");
  EXPECT_EQ(answer["reasoning_content"], "hm");
  ASSERT_EQ(answer["tool_calls"].size(), 1u);
  EXPECT_EQ(answer["tool_calls"][0]["type"], "function");
  EXPECT_EQ(answer["tool_calls"][0]["function"]["name"], "get_weather");
  EXPECT_EQ(json::parse(answer["tool_calls"][0]["function"]["arguments"].get<std::string>()), json({{"city", "北京"}}));
  EXPECT_EQ(answer["finish_reason"], "tool_calls");
  EXPECT_GT(answer["usage"]["prompt_tokens"], 0);
  EXPECT_EQ(answer["usage"]["reused"], 0);
  EXPECT_GT(answer["usage"]["completion_tokens"], 0);
  EXPECT_GT(answer["timings"]["decode_seconds"], 0.0);
  const json plain = parsed(run(saying("好") + "--json -p 你好"));
  EXPECT_EQ(plain["reasoning_content"], nullptr);
  EXPECT_EQ(plain["tool_calls"], json::array());
  EXPECT_EQ(plain["finish_reason"], "stop");
}

TEST_F(Chat, ThoughtsStayOutOfAPipeUnlessWanted) {
  const std::string thinking = saying("<think>\nhm\n</think>\n\n好");
  EXPECT_EQ(run(thinking + "-p a").out, "好\n");
  EXPECT_EQ(run(thinking + "-p a --show-thinking").out, "<think>\nhm\n</think>\n\n好\n");
  EXPECT_EQ(run(saying("<think>\n\n</think>\n\n好") + "-p a --show-thinking").out, "好\n");
}

TEST_F(Chat, APipeGetsTheTextUnchanged) {
  EXPECT_EQ(run(saying("a\x1b[31m\r\nb\n") + "-p a").out, "a\x1b[31m\r\nb\n");
}

TEST_F(Chat, TurnsAnswersEachLineAndReusesWhatWasComputed) {
  const Outcome outcome = run(saying("好") + "--turns --json" + input("one\n\n//two\nthree\\\nfour\n"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::vector<json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  ASSERT_EQ(answers.size(), 3u) << outcome.out;
  EXPECT_EQ(answers[0]["usage"]["reused"], 0);
  EXPECT_GE(answers[1]["usage"]["reused"], answers[0]["usage"]["prompt_tokens"]);
  EXPECT_GE(answers[2]["usage"]["reused"], answers[1]["usage"]["prompt_tokens"]);
  EXPECT_EQ(run(saying("好") + "--turns" + input("one\ntwo\n")).out, "好\n好\n");
}

TEST_F(Chat, TurnsTakeCommands) {
  const std::string commands =
      "one\ntwo\n/undo\n/regenerate\n/system 短\nthree\n/save " + path("c.json") + "\n/reset\n/stats\n/exit\nnever\n";
  const Outcome outcome = run(saying("好") + "--turns" + input(commands));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "好\n好\n好\n好\n");
  EXPECT_NE(outcome.err.find("took back: two"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("all answers"), std::string::npos) << outcome.err;
  std::vector<std::string> contents;
  const json saved = json::parse(read_whole_file(path("c.json")));
  for (const json& message : saved["messages"]) contents.push_back(message["content"]);
  EXPECT_EQ(contents, (std::vector<std::string>{"短", "one", "好", "three", "好"}));
}

TEST_F(Chat, StatsFitAScreenOf80Columns) {
  const Outcome outcome = run(saying("好") + "--turns" + input("one\n/stats\n"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.err.substr(outcome.err.find("context       ")));
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 80u) << line;
}

TEST_F(Chat, TurnsThatAreLeftOutAreCounted) {
  std::string messages;
  for (int i = 0; i < 12; ++i) messages += "one\n";
  const Outcome outcome = run(saying("好") + "-c 128 -n 8 --turns" + input(messages));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find(" turns are dropped\n"), std::string::npos) << outcome.err;
}

TEST_F(Chat, AFileThatCannotBeWrittenIsToldBeforeAnythingIsSaid) {
  for (const char* const option : {"--session ", "--save "}) {
    const Outcome outcome = run(saying("好") + option + path("missing/file") + " -p a");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("missing/file"), std::string::npos) << outcome.err;
  }
}

TEST_F(Chat, TagsInTheStringsOfASchemaAreNoCalls) {
  const std::string text = "<think>a</think> <tool_call>b</tool_call>";
  std::ofstream(path("schema.json")) << json({{"const", text}}).dump();
  const Outcome outcome = run("chat" + demo + " -q -p a --json-schema " + path("schema.json"));
  EXPECT_EQ(outcome.out, json(text).dump() + "\n") << outcome.err;
}

TEST_F(Chat, WhatTheTemplateDoesNotMindIsTold) {
  std::ofstream(path("tools.json")) << R"([{"type": "function", "function": {"name": "f"}}])";
  const std::string settings = "--think --tools " + path("tools.json") + " --turns";
  const std::string thinking = "ignores thinking", tools = "ignores tools";
  const Outcome minded = run(saying("好") + "--no-think --tools " + path("tools.json") + " -p a");
  EXPECT_EQ(minded.err.find("ignores"), std::string::npos) << minded.err;
  std::ofstream(path("plain.jinja")) << "{{ messages[-1].content }}\n";
  const Outcome outcome =
      run("chat" + demo + " -n 1 --template " + path("plain.jinja") + " " + settings + input("a\n"));
  EXPECT_NE(outcome.err.find(thinking), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(tools), std::string::npos) << outcome.err;
  const Outcome command =
      run("chat" + demo + " -n 1 --template " + path("plain.jinja") + " --turns" + input("/think on\n"));
  EXPECT_NE(command.err.find(thinking), std::string::npos) << command.err;
}

TEST_F(Chat, WhatIsWrongInALineOfTurnsEndsTheWorkAndNamesTheLine) {
  const Outcome unknown = run(saying("好") + "--turns" + input("one\n/hepl\ntwo\n"));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.out, "好\n");
  EXPECT_NE(unknown.err.find("line 2 of the text: unknown command '/hepl'"), std::string::npos) << unknown.err;
  EXPECT_EQ(run(saying("好") + "--turns" + input("/load " + path("missing") + "\n")).status, 1);
  EXPECT_EQ(run(saying("好") + "--turns" + input("\"\"\"\nopen\n")).status, 1);
  EXPECT_EQ(run(saying("好") + "--turns" + input("a\xff\n")).status, 1);
}

TEST_F(Chat, AResultGoesBackToTheModelInAnotherCall) {
  const std::string saved = " --save " + path("c.json");
  EXPECT_EQ(run(saying(call) + "-p 天气" + saved).out, "");
  const Outcome told = run(saying(call) + "-p 天气" + saved);
  EXPECT_NE(told.err.find("the model calls get_weather("), std::string::npos) << told.err;
  const Outcome answered =
      run(saying("晴") + "--load " + path("c.json") + saved + " --tool-result" + input("{\"sky\": \"clear\"}\n"));
  EXPECT_EQ(answered.out, "晴\n") << answered.err;
  const json messages = json::parse(read_whole_file(path("c.json")))["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2]["role"], "tool");
  EXPECT_EQ(messages[2]["content"], "{\"sky\": \"clear\"}");
  EXPECT_EQ(run(saying("晴") + "--load " + path("c.json") + " --tool-result -p x").status, 2);
  EXPECT_EQ(run(saying("晴") + "--tool-result -p x").status, 2);
}

TEST_F(Chat, ResultsOfSeveralCallsAreGivenOneByOne) {
  const Outcome outcome = run(saying(call + "\n" + call) + "--turns" + input("天气\n/tool\n/tool 1\n/tool 2\n"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1 of 2 results; the next is that of get_weather("), std::string::npos) << outcome.err;
}

TEST_F(Chat, ToolsGoIntoThePrompt) {
  std::ofstream(path("tools.json"))
      << R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}])";
  const std::size_t without = parsed(run(saying("好") + "--json -p a"))["usage"]["prompt_tokens"];
  const std::string tools = " --tools " + path("tools.json");
  EXPECT_GT(parsed(run(saying("好") + "--json -p a" + tools))["usage"]["prompt_tokens"], without + 20);
  EXPECT_NE(run(saying("好") + "--turns" + tools + input("/tool\n")).err.find("get_weather"), std::string::npos);
  std::ofstream(path("tools.json")) << "{\"tools\": 1}";
  const Outcome wrong = run(saying("好") + "-p a" + tools);
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find(path("tools.json")), std::string::npos) << wrong.err;
}

TEST_F(Chat, ASessionGoesOnWithoutComputingAnythingTwice) {
  const std::string session = "--session " + path("s") + " --json ";
  const json first = parsed(run(saying("好") + session + "-p one"));
  const json second = parsed(run(saying("好") + session + "-p two"));
  EXPECT_GE(second["usage"]["reused"], first["usage"]["prompt_tokens"]);
  EXPECT_EQ(run("chat -m " + load_golden("v3-dense").model_path +
                " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo --session " + path("s") + " -p x")
                .status,
            1);
}

TEST_F(Chat, AnswersEndAtMaxTokensAndAtAFullContext) {
  const Outcome cut = run("chat --greedy --ignore-eos -n 5 -p 山居");
  EXPECT_EQ(cut.status, 0);
  EXPECT_NE(cut.err.find("cut short by --max-tokens"), std::string::npos) << cut.err;
  const Outcome full = run("chat --greedy --ignore-eos -c 40 -p 山居");
  EXPECT_EQ(full.status, 0) << full.err;
  EXPECT_NE(full.err.find("cut short: the context is full"), std::string::npos) << full.err;
}

TEST_F(Chat, AFullContextLosesTheOldestTurnsOrFails) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "第" + std::to_string(i) + "句话\n";
  const Outcome shifted = run(saying("好") + "-c 120 --turns" + input(lines));
  EXPECT_EQ(shifted.status, 0) << shifted.err;
  EXPECT_NE(shifted.err.find("the context is full: the oldest"), std::string::npos) << shifted.err;
  EXPECT_EQ(run(saying("好") + "-c 120 --turns --no-shift" + input(lines)).status, 1);
}

TEST_F(Chat, CallsThatMeanNothingAreUsageErrors) {
  for (const char* arguments : {"-p ''", "--turns --tool-result --load x", "--json --show-thinking -p a",
                                "--think --no-think -p a", "--session a --load b -p a", "--stop '' -p a"}) {
    EXPECT_EQ(run("chat " + std::string(arguments)).status, 2) << arguments;
  }
  EXPECT_EQ(run("chat").status, 1);  // standard input is empty
}

// The program at a terminal.
class ChatTerminal : public Chat {
 protected:
  // `arguments`, separated by spaces.
  PseudoTerminal start(const std::string& arguments, const char* terminal = "xterm") const {
    const std::string command = "exec " + program() + " " + arguments;
    return PseudoTerminal([&] {
      setenv("TERM", terminal, 1);
      setenv("HOME", path("").c_str(), 1);
      unsetenv("XDG_STATE_HOME");
      unsetenv("NO_COLOR");
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      return 127;
    });
  }
};

#define EXPECT_SHOWN(terminal, text) \
  EXPECT_TRUE((terminal).wait_for(text)) << testing::PrintToString((terminal).shown())

TEST_F(ChatTerminal, AConversationIsEditedTakenBackAndAnsweredAgain) {
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, "/help lists the commands; Ctrl-D to exit");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("你好吗\x7f\x1b[D们\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  terminal.type("/regenerate\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  terminal.type("/stats\r");
  EXPECT_SHOWN(terminal, "1 turn\r\n");
  terminal.type("/save " + path("c.json") + "\r");
  EXPECT_SHOWN(terminal, "saved 1 turn");
  terminal.type("/undo\r");
  EXPECT_SHOWN(terminal, "took back: 你们好");
  terminal.type("/hepl\r");
  EXPECT_SHOWN(terminal, "unknown command '/hepl'");
  EXPECT_SHOWN(terminal, "\n\x1b[?2004h");
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][0]["content"], "你们好");
  EXPECT_EQ(read_whole_file(path(".local/state/minimind/history")),
            "你们好\n/regenerate\n/stats\n/save " + path("c.json") + "\n/undo\n/hepl\n");
}

TEST_F(ChatTerminal, CtrlCStopsTheAnswerWhichStaysAndTwiceLeaves) {
  PseudoTerminal terminal = start("chat --seed 1 --ignore-eos -n 100000 " + demo);
  EXPECT_SHOWN(terminal, ">");
  terminal.type("山居\r");
  EXPECT_SHOWN(terminal, "，");
  terminal.type("\x03");
  EXPECT_SHOWN(terminal, "(stopped)");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("/save " + path("c.json") + "\r");
  EXPECT_SHOWN(terminal, "saved 1 turn");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("\x03");
  EXPECT_SHOWN(terminal, "Ctrl-C again or Ctrl-D to exit");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("\x03");
  EXPECT_EQ(terminal.status(), 130);
  EXPECT_GT(json::parse(read_whole_file(path("c.json")))["messages"][1]["content"].get<std::string>().size(), 3u);
}

TEST_F(ChatTerminal, ThoughtsAreDimmedAndCallsAreShownAsCalls) {
  PseudoTerminal terminal = start(saying("<think>\nhm\n</think>\n\n好" + call));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "\x1b[2m");
  EXPECT_SHOWN(terminal, "好\r\n");
  EXPECT_SHOWN(terminal, "→ get_weather({");
  EXPECT_SHOWN(terminal, "/tool RESULT gives the model what get_weather returned");
  EXPECT_SHOWN(terminal, "\n\x1b[?2004h");
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
}

TEST_F(ChatTerminal, AnAnswerCannotDriveTheTerminal) {
  PseudoTerminal terminal = start(saying("a\x1b[31mb\x07"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "a^[[31mb^G\r\n");
}

TEST_F(ChatTerminal, ADumbTerminalGetsNoEscapeSequences) {
  PseudoTerminal terminal = start(saying("<think>hm</think>好"), "dumb");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "好\r\n");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
  EXPECT_EQ(terminal.shown().find('\x1b'), std::string::npos) << testing::PrintToString(terminal.shown());
}

TEST_F(ChatTerminal, BlocksAndLinesThatGoOnAreOneMessage) {
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\\\rb\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  terminal.type("\"\"\"\r/c\r\"\"\"\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  terminal.type("/save " + path("c.json") + "\r");
  EXPECT_SHOWN(terminal, "saved 2 turns");
  const json messages = json::parse(read_whole_file(path("c.json")))["messages"];
  EXPECT_EQ(messages[0]["content"], "a\nb");
  EXPECT_EQ(messages[2]["content"], "/c");
}

}  // namespace
}  // namespace minimind
