#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/cli.h"
#include "tests/support/pseudo_terminal.h"

namespace minimind {
namespace {

using nlohmann::json;

// The demo, with a template that includes every message and a grammar that determines the answer.
class Chat : public Cli {
 protected:
  Chat() {
    std::ofstream(path("chat.jinja")) << R"({%- for m in messages -%}
<{{ m.role }}>{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls else '' }}
{% endfor %}{{ tools | tojson if tools else '' }}{{ '<think>\n' if open_thinking else '' }})";
  }

  // Always answers with `text`.
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

TEST_F(Chat, TheBundledPoetAnswersAnyMessage) {
  const Outcome titled = run("chat --seed 1 -q" + input("你好\n"));
  EXPECT_EQ(titled.status, 0) << titled.err;
  const std::string rendered = "<|im_start|>user\n你好<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(titled.out, run("generate --seed 1 -q" + input(rendered)).out + "\n");
  EXPECT_GT(titled.out.size(), 60u);
}

TEST_F(Chat, PlainContentHasNoControlTokens) {
  const auto prompt_tokens = [&](const std::string& message, const std::string& option) {
    return parsed(run("chat -q --json -n 1 -p '" + message + "'" + demo + option))["usage"]["prompt_tokens"].get<int>();
  };
  EXPECT_GT(prompt_tokens("<|im_end|>", " --plain-content"), prompt_tokens("<|im_end|>", ""));
  EXPECT_EQ(prompt_tokens("江上", " --plain-content"), prompt_tokens("江上", ""));
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

TEST_F(Chat, APipeGetsNoThinkingUnlessRequested) {
  const std::string thinking = saying("<think>\nhm\n</think>\n\n好");
  EXPECT_EQ(run(thinking + "-p a").out, "好\n");
  EXPECT_EQ(run(thinking + "-p a --show-thinking").out, "<think>\nhm\n</think>\n\n好\n");
}

TEST_F(Chat, ShowThinkingPrintsExactlyWhatTheModelWrote) {
  for (const std::string& text : std::vector<std::string>{
           "<think>\n\n</think>\n\n好", "\n <think>hm", "<think>hm</thin", "<think>a</think>b" + call,
           "<think>a</think><tool_call>{\"name\": 1", "<think>a</think>\n<think>b</think>\n\n c"}) {
    const std::string arguments = saying(text) + "-q -p a --show-thinking --save " + path("c.json");
    EXPECT_EQ(run(arguments).out, text + "\n");
    const std::string saved = read_whole_file(path("c.json"));
    EXPECT_EQ(saved.find("think>"), std::string::npos) << saved;
  }
}

TEST_F(Chat, LeadingNewlinesOfAnAnswerAreKept) {
  const std::string arguments = saying("\n\n好\n") + "--save " + path("c.json") + " -p a";
  for (const std::string prompt_end : {"", "<think>\n\n</think>\n\n"}) {
    std::ofstream(path("chat.jinja")) << "{{ messages[-1].content }}" << prompt_end << "\n";
    EXPECT_EQ(run(arguments).out, "\n\n好\n");
    EXPECT_EQ(parsed(run(arguments + " --json"))["content"], "\n\n好\n");
    EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][1]["content"], "\n\n好\n");
  }
}

TEST_F(Chat, CallsAreKeptComplete) {
  const json named = parsed(run(saying(R"(<tool_call>{"name":"a","parameters":{"x":1}}</tool_call>)") + "--json -p a"));
  EXPECT_EQ(named["tool_calls"][0]["function"], json({{"name", "a"}, {"arguments", "{\"x\":1}"}}));
  const json inner =
      parsed(run(saying(R"(<tool_call>{"name":"a","arguments":{"s":"</tool_call>"}}</tool_call>)") + "--json -p a"));
  EXPECT_EQ(inner["tool_calls"][0]["function"], json({{"name", "a"}, {"arguments", "{\"s\":\"</tool_call>\"}"}}));
  for (const std::string text : {R"(看 <tool_call>{"name":"a","arguments":{"x":1},"id":2}</tool_call>)",
                                 R"(看 <tool_call>{"name":"a","arguments":{"x":)", R"(<tool_call>{"name")"}) {
    const json answer = parsed(run(saying(text) + "--json -p a --save " + path("c.json")));
    EXPECT_EQ(answer["content"], text);
    EXPECT_EQ(answer["tool_calls"], json::array());
    EXPECT_EQ(answer["finish_reason"], "stop");
    EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][1]["content"], text);
    const Outcome shown = run(saying(text) + "-p a");
    EXPECT_EQ(shown.out, text + "\n");
    EXPECT_NE(shown.err.find("is not a call"), std::string::npos) << shown.err;
  }
}

TEST_F(Chat, APipeGetsTheTextUnchanged) {
  EXPECT_EQ(run(saying("a\x1b[31m\r\nb\n") + "-p a").out, "a\x1b[31m\r\nb\n");
}

TEST_F(Chat, TurnsAnswersEachLineAndReusesTheCache) {
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

TEST_F(Chat, DroppedTurnsAreCounted) {
  std::string messages;
  for (int i = 0; i < 12; ++i) messages += "one\n";
  const Outcome outcome = run(saying("好") + "-c 128 -n 8 --turns" + input(messages));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find(" turns are dropped\n"), std::string::npos) << outcome.err;
}

TEST_F(Chat, HistoryCountsTurnsAndHistorysMessages) {
  const auto prompt_tokens = [&](const std::string& options) {
    const Outcome outcome = run(saying("好") + "-q --json --turns " + options + input("one\none\none\n"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<std::size_t> counts;
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) counts.push_back(json::parse(line)["usage"]["prompt_tokens"]);
    return counts;
  };
  const std::vector<std::size_t> all = prompt_tokens(""), none = prompt_tokens("--history 0");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_LT(all[1], all[2]);
  EXPECT_EQ(none, std::vector<std::size_t>(3, all[0]));
  EXPECT_EQ(prompt_tokens("--historys 0"), none);
  EXPECT_EQ(prompt_tokens("--history 1"), (std::vector<std::size_t>{all[0], all[1], all[1]}));
  EXPECT_EQ(prompt_tokens("--historys 2"), prompt_tokens("--history 1"));
  EXPECT_EQ(prompt_tokens("--history 2"), all);
  const Outcome stats = run(saying("好") + "--turns --history 0" + input("one\none\none\n/stats\n"));
  EXPECT_NE(stats.err.find("3 turns, the oldest 2 dropped"), std::string::npos) << stats.err;
  EXPECT_EQ(stats.err.find("the context is full"), std::string::npos) << stats.err;
  const Outcome odd = run(saying("好") + "--historys 3 -p a");
  EXPECT_EQ(odd.status, 2);
  EXPECT_NE(odd.err.find("--historys is 3, expected an even number"), std::string::npos) << odd.err;
  EXPECT_EQ(run(saying("好") + "--historys 2 --history 1 -p a").status, 2);
}

TEST_F(Chat, AnUnwritableFileIsReportedAtTheStart) {
  for (const char* const option : {"--session ", "--save "}) {
    const Outcome outcome = run(saying("好") + option + path("missing/file") + " -p a");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("missing/file"), std::string::npos) << outcome.err;
  }
}

TEST_F(Chat, SavesInNoFileOfTheModel) {
  const std::string demo_model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth", model = path("model.pth");
  std::filesystem::copy_file(demo_model, model);
  std::filesystem::create_symlink(model, path("link"));
  saying("好");  // writes the grammar
  const std::string with_model = "chat -m " + model + " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo --template " +
                                 path("chat.jinja") + " --grammar " + path("answer.gbnf");
  for (const std::string& name : {model, path("link")}) {
    const Outcome outcome = run(with_model + " -p a --save " + name);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(name + ": is a file of the model; name another file"), std::string::npos) << outcome.err;
    EXPECT_EQ(run(with_model + " --turns" + input("/save " + name + "\n")).status, 2);
  }
  EXPECT_TRUE(read_whole_file(model) == read_whole_file(demo_model));
}

TEST_F(Chat, TagsInStringsOfASchemaAreNotCalls) {
  const std::string text = "<think>a</think> <tool_call>b</tool_call>";
  std::ofstream(path("schema.json")) << json({{"const", text}}).dump();
  const Outcome outcome = run("chat" + demo + " -q -p a --json-schema " + path("schema.json"));
  EXPECT_EQ(outcome.out, json(text).dump() + "\n") << outcome.err;
}

TEST_F(Chat, SettingsThatTheTemplateIgnoresAreReported) {
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

TEST_F(Chat, AnErrorInALineOfTurnsNamesTheLine) {
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
  const Outcome called = run(saying(call) + "-p 天气" + saved);
  EXPECT_NE(called.err.find("the model calls get_weather("), std::string::npos) << called.err;
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
  EXPECT_NE(outcome.err.find("1 of 2 results; next: get_weather("), std::string::npos) << outcome.err;
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

TEST_F(Chat, ASessionContinuesWithItsCache) {
  const std::string session = "--session " + path("s") + " --json ";
  const json first = parsed(run(saying("好") + session + "-p one"));
  const json second = parsed(run(saying("好") + session + "-p two"));
  EXPECT_GE(second["usage"]["reused"], first["usage"]["prompt_tokens"]);
  const Outcome other = run("chat -m " + load_golden("v3-dense").model_path +
                            " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo --session " + path("s") + " -p x");
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(other.err.ends_with("(--model, --lora, --type, --rope-scaling and --compute)\n")) << other.err;
}

// Counts how often a file is opened and closed again.
class OpenCounter {
 public:
  explicit OpenCounter(const std::string& path) : descriptor_(inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(inotify_add_watch(descriptor_, path.c_str(), IN_OPEN | IN_CLOSE), 0) << path;
  }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;
  ~OpenCounter() { close(descriptor_); }

  std::size_t take() {
    inotify_event event;
    std::size_t opened = 0;
    while (read(descriptor_, &event, sizeof event) == sizeof event) opened += (event.mask & IN_OPEN) != 0;
    return opened;
  }

 private:
  int descriptor_;
};

TEST_F(Chat, ASessionOpensTheCheckpointOnce) {
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", path("model.pth"));
  OpenCounter counter(path("model.pth"));
  const std::string chat = "chat --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo -n 2 -p 江上 -m " + path("model.pth");
  EXPECT_EQ(run(chat).status, 0);
  const std::size_t opened = counter.take();
  EXPECT_GE(opened, 1u);
  for (const char* const turn : {"first", "second"}) {
    EXPECT_EQ(run(chat + " --session " + path("s")).status, 0);
    EXPECT_EQ(counter.take(), opened) << turn;
  }
}

TEST_F(Chat, LoadRejectsASession) {
  EXPECT_EQ(run(saying("好") + "--session " + path("s") + " -p a").status, 0);
  const Outcome outcome = run(saying("好") + "--load " + path("s") + " -p a");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find(path("s") + ": is a session, expected a conversation"), std::string::npos) << outcome.err;
}

TEST_F(Chat, ASessionThatCannotBeOpenedIsNamed) {
  std::filesystem::create_symlink(path("s"), path("s"));
  const Outcome outcome = run(saying("好") + "--session " + path("s") + " -p a");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find(path("s") + ": cannot be "), std::string::npos) << outcome.err;
}

TEST_F(Chat, SessionAndSaveMustBeTwoFiles) {
  EXPECT_EQ(run(saying("好") + "--session " + path("s") + " --save " + path("./s") + " -p a").status, 2);
}

TEST_F(Chat, SavingLeavesNoOtherFiles) {
  std::filesystem::create_directory(path("folder"));
  const std::string folder = path("folder") + "/";
  EXPECT_EQ(run(saying("好") + "--session " + folder + "s --save " + folder + "c.json -p a").status, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"c.json", "s"}));
}

TEST_F(Chat, AnswersEndAtMaxTokensAndAtAFullContext) {
  const Outcome cut = run("chat --greedy --ignore-eos -n 5 -p 山居");
  EXPECT_EQ(cut.status, 0);
  EXPECT_NE(cut.err.find("cut short by --max-tokens"), std::string::npos) << cut.err;
  const Outcome full = run("chat --greedy --ignore-eos -c 40 -p 山居");
  EXPECT_EQ(full.status, 0) << full.err;
  EXPECT_NE(full.err.find("cut short: the context is full"), std::string::npos) << full.err;
}

TEST_F(Chat, AFullContextDropsTheOldestTurnsOrFails) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "第" + std::to_string(i) + "句话\n";
  const Outcome shifted = run(saying("好") + "-c 120 --turns" + input(lines));
  EXPECT_EQ(shifted.status, 0) << shifted.err;
  EXPECT_NE(shifted.err.find("the context is full: the oldest"), std::string::npos) << shifted.err;
  EXPECT_EQ(run(saying("好") + "-c 120 --turns --no-shift" + input(lines)).status, 1);
}

TEST_F(Chat, ContradictoryOptionsAreUsageErrors) {
  for (const char* arguments : {"--turns -p ''", "--turns --tool-result --load x", "--json --show-thinking -p a",
                                "--think --no-think -p a", "--session a --load b -p a", "--stop '' -p a"}) {
    EXPECT_EQ(run("chat " + std::string(arguments)).status, 2) << arguments;
  }
  EXPECT_EQ(run("chat").status, 1);  // standard input is empty
}

TEST_F(Chat, AnEmptyPromptIsAnEmptyMessage) {
  const Outcome outcome = run(saying("好") + "-p '' --save " + path("c.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "好\n");
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][0], json({{"role", "user"}, {"content", ""}}));
  EXPECT_EQ(run("chat --seed 1 -q -p ''").out,
            run("generate --seed 1 -q" + input("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n")).out + "\n");
}

TEST_F(Chat, AnEmptyPromptThatTheTemplateRejectsIsAnError) {
  std::ofstream(path("strict.jinja"))
      << "{% if not messages[-1].content %}{{ raise_exception('say something') }}{% endif %}a";
  const Outcome rejected = run("chat" + demo + " -p '' --template " + path("strict.jinja"));
  EXPECT_EQ(rejected.status, 1);
  EXPECT_EQ(rejected.out, "");
  EXPECT_NE(rejected.err.find("say something"), std::string::npos) << rejected.err;
  std::ofstream(path("bare.jinja")) << "{{ messages[-1].content }}";
  const Outcome nothing = run("chat" + demo + " -p '' --template " + path("bare.jinja"));
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.out, "");
  EXPECT_NE(nothing.err.find("the chat template makes an empty prompt of the message"), std::string::npos)
      << nothing.err;
}

TEST_F(Chat, ExitWithoutASlashIsAMessageInAScript) {
  const Outcome outcome = run(saying("好") + "--turns" + input("exit\nquit\n/clear\n"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "好\n好\n");
  EXPECT_NE(outcome.err.find("new conversation"), std::string::npos) << outcome.err;
}

// The program on a terminal.
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

TEST_F(ChatTerminal, CtrlCEndsReadingAPipe) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  const int writer = open(path("fifo").c_str(), O_RDWR | O_CLOEXEC);
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("/load " + path("fifo") + "\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l");
  terminal.type("\x03");
  EXPECT_SHOWN(terminal, "(stopped)");
  EXPECT_SHOWN(terminal, ">");
  terminal.type("/load " + path("fifo") + "\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l");
  terminal.signal(SIGTERM);
  EXPECT_EQ(terminal.status(), 143);
  close(writer);
}

TEST_F(ChatTerminal, CommandsChangeTheConversation) {
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

TEST_F(ChatTerminal, CtrlCStopsAnAnswerAndTwiceExits) {
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

TEST_F(ChatTerminal, ThinkingIsDimmedAndCallsHaveArrows) {
  PseudoTerminal terminal = start(saying("<think>\nhm\n</think>\n\n好" + call));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "\x1b[2m");
  EXPECT_SHOWN(terminal, "好\r\n");
  EXPECT_SHOWN(terminal, "→ get_weather({");
  EXPECT_SHOWN(terminal, "type /tool RESULT to return the result of get_weather");
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

TEST_F(ChatTerminal, AFileInUseIsReportedAtTheStart) {
  for (const std::string option : {"--session ", "--save "}) {
    const std::string kept = option + path("kept");
    PseudoTerminal first = start(saying("好") + kept);
    EXPECT_SHOWN(first, ">");
    const Outcome rejected = run(saying("好") + kept + " -p a");
    EXPECT_EQ(rejected.status, 1);
    EXPECT_EQ(rejected.out, "");
    EXPECT_NE(rejected.err.find(path("kept") + ": is in use by process "), std::string::npos) << rejected.err;
    EXPECT_NE(rejected.err.find("minimind chat"), std::string::npos) << rejected.err;
    EXPECT_EQ(run(saying("好") + option + path("other") + " -p a").status, 0);
    const Outcome saved = run(saying("好") + "--turns" + input("a\n/save " + path("kept") + "\n"));
    EXPECT_EQ(saved.status, 1);
    EXPECT_NE(saved.err.find(path("kept") + ": is in use by process "), std::string::npos) << saved.err;
    first.type("/save " + path("kept") + "\r");
    EXPECT_SHOWN(first, "is in use by this process");
    EXPECT_FALSE(std::filesystem::exists(path("kept")));
    first.signal(SIGKILL);
    EXPECT_EQ(first.status(), 128 + SIGKILL);
    EXPECT_EQ(run(saying("好") + kept + " -p a").status, 0) << "the lock ends with the process";
    EXPECT_FALSE(std::filesystem::exists(path(".kept.lock")));
    std::filesystem::remove(path("kept"));
  }
}

TEST_F(ChatTerminal, AFullDiskIsReportedAndTheConversationContinues) {
  PseudoTerminal terminal = start(saying("好") + "--session " + path("s"));
  EXPECT_SHOWN(terminal, ">");
  terminal.limit_files(0);
  const auto ask = [&] {
    terminal.type("a\r");
    EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  };
  ask();
  EXPECT_SHOWN(terminal, path("s") + ": cannot be written: File too large; the conversation continues");
  EXPECT_SHOWN(terminal, ">");
  ask();
  EXPECT_SHOWN(terminal, ">");
  EXPECT_FALSE(std::filesystem::exists(path("s")));
  terminal.limit_files(RLIM_INFINITY);
  ask();
  EXPECT_SHOWN(terminal, path("s") + ": the conversation is saved again");
  EXPECT_SHOWN(terminal, ">");
  terminal.signal(SIGKILL);
  EXPECT_EQ(terminal.status(), 128 + SIGKILL);
  const Outcome later = run(saying("好") + "-p a --session " + path("s"));
  EXPECT_NE(later.err.find("continuing " + path("s") + ": 3 turns"), std::string::npos) << later.err;
}

TEST_F(ChatTerminal, ASessionIsSavedWithoutItsCacheIfOnlyThatFits) {
  PseudoTerminal terminal = start(saying("好") + "--session " + path("s") + " --save " + path("c.json"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  EXPECT_SHOWN(terminal, ">");
  terminal.limit_files(4096);
  terminal.type("\x04");
  EXPECT_SHOWN(terminal, "saved without the KV cache");
  EXPECT_EQ(terminal.status(), 0);
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"].size(), 2u);
  const Outcome later = run(saying("好") + "-p a --session " + path("s"));
  EXPECT_NE(later.err.find("continuing " + path("s") + ": 1 turn, 0 tokens in the context"), std::string::npos)
      << later.err;
}

TEST_F(ChatTerminal, ASessionThatCannotBeSavedFailsAtTheEnd) {
  PseudoTerminal terminal = start(saying("好") + "--session " + path("s") + " --save " + path("c.json"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("a\r");
  EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
  EXPECT_SHOWN(terminal, ">");
  terminal.limit_files(300);
  terminal.type("\x04");
  EXPECT_SHOWN(terminal, path("s") + ": cannot be written: File too large");
  EXPECT_EQ(terminal.status(), 1);
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"].size(), 2u) << "the other file is written";
}

TEST_F(ChatTerminal, TheHistoryCannotDriveTheTerminal) {
  std::filesystem::create_directories(path(".local/state/minimind"));
  std::ofstream(path(".local/state/minimind/history")) << "a\x1b]0;title\x07\u202E\n";
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, ">");
  terminal.type("\x1b[A");
  EXPECT_SHOWN(terminal, "a^[]0;title^G<U+202E>");
  EXPECT_EQ(terminal.shown().find("\x1b]0;"), std::string::npos);
}

TEST_F(ChatTerminal, ExitAndQuitExitAndNameTheCommand) {
  for (const std::string word : {"exit", "quit", "Quit", "EXIT "}) {
    PseudoTerminal terminal = start(saying("好"));
    EXPECT_SHOWN(terminal, ">");
    terminal.type(" " + word + "\r");
    EXPECT_SHOWN(terminal, "\x1b[?2004l好\r\n");
    EXPECT_SHOWN(terminal, ">");
    terminal.type(word + "\r");
    EXPECT_SHOWN(terminal, "exited, as with /exit");
    EXPECT_EQ(terminal.status(), 0);
  }
}

TEST_F(ChatTerminal, BlocksAndContinuedLinesAreOneMessage) {
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

TEST_F(ChatTerminal, ALineSurvivesANarrowTerminal) {
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, "> ");
  terminal.type("第二条消息一二三四五");
  EXPECT_SHOWN(terminal, "五");
  terminal.resize(20, 10);
  EXPECT_SHOWN(terminal, "五");
  terminal.type("六七");
  EXPECT_SHOWN(terminal, "七");
  terminal.resize(80, 24);
  EXPECT_SHOWN(terminal, "五六七");
  terminal.type("\r");
  EXPECT_SHOWN(terminal, "好\r\n");
  EXPECT_SHOWN(terminal, "> ");
  terminal.type("/save " + path("c.json") + "\r");
  EXPECT_SHOWN(terminal, "saved 1 turn");
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][0]["content"], "第二条消息一二三四五六七");
}

TEST_F(ChatTerminal, CtrlRFindsAChineseMessage) {
  PseudoTerminal terminal = start(saying("好"));
  EXPECT_SHOWN(terminal, "> ");
  for (const char* const message : {"北京的天气\r", "上海\r"}) {
    terminal.type(message);
    EXPECT_SHOWN(terminal, "好\r\n");
    EXPECT_SHOWN(terminal, "> ");
  }
  terminal.type("\x12天气\r");
  EXPECT_SHOWN(terminal, "好\r\n");
  EXPECT_SHOWN(terminal, "> ");
  terminal.type("/save " + path("c.json") + "\r");
  EXPECT_SHOWN(terminal, "saved 3 turns");
  EXPECT_EQ(json::parse(read_whole_file(path("c.json")))["messages"][4]["content"], "北京的天气");
}

TEST_F(ChatTerminal, ASignalEndsTheChatWithItsStatus) {
  for (const auto& [signal, status] : {std::pair{SIGTERM, 143}, {SIGHUP, 129}}) {
    PseudoTerminal waiting = start(saying("好"));
    EXPECT_SHOWN(waiting, "> ");
    waiting.signal(signal);
    EXPECT_EQ(waiting.status(), status);
    PseudoTerminal answering = start("chat --seed 1 --ignore-eos -n 100000 " + demo);
    EXPECT_SHOWN(answering, "> ");
    answering.type("山居\r");
    EXPECT_SHOWN(answering, "，");
    answering.signal(signal);
    EXPECT_EQ(answering.status(), status);
    const std::string& shown = answering.shown();
    ASSERT_NE(shown.find("(stopped)"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("> ", shown.find("(stopped)")), std::string::npos) << "no prompt follows";
  }
}

TEST_F(ChatTerminal, CtrlDDuringAnAnswerExitsAfterIt) {
  PseudoTerminal terminal = start("chat --seed 1 --ignore-eos -n 100 " + demo);
  EXPECT_SHOWN(terminal, "> ");
  terminal.type("山居\r");
  EXPECT_SHOWN(terminal, "，");
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0);
}

// Returns a random key, piece of text or paste.
std::string random_typing(std::mt19937& random) {
  static const std::vector<std::string> typing = {
      "a",
      "word ",
      "北京",
      "，",
      "e\u0301",
      "\u0301",
      "👩‍👩‍👧",
      "❤️",
      "🇨🇳",
      "\u202e",
      "\xff",
      "\r",
      "\n",
      "\t",
      "\x1b\r",
      "\x7f",
      "\x01",
      "\x02",
      "\x03",
      "\x04",
      "\x05",
      "\x06",
      "\x0b",
      "\x0c",
      "\x10",
      "\x12",
      "\x14",
      "\x15",
      "\x17",
      "\x1a",
      "\x19",
      "\x1b[A",
      "\x1b[B",
      "\x1b[D",
      "\x1b[3~",
      "\x1b[1;5D",
      "\x1b"
      "f",
      "\x1b",
      "\x1b[",
      "/re",
      "/undo\r",
      "\x1b[200~pasted\r文字\x1b[31m\x1b[201~",
  };
  if (random() % 50 == 0) return "\x1b[200~" + std::string(random() % 600, 'x') + "\x1b[201~";
  return typing[random() % typing.size()];
}

// MINIMIND_TERMINAL_EVENTS: the number of events instead of a small one.
TEST_F(ChatTerminal, RandomEventsDoNoHarm) {
  const char* const given = std::getenv("MINIMIND_TERMINAL_EVENTS");
  const std::size_t events = given ? std::stoul(given) : 1000;
  std::mt19937 random(1);
  for (std::size_t done = 0; done < events;) {
    PseudoTerminal terminal = start(saying("好") + "-n 4");
    ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
    bool runs = true;
    for (; runs && done < events; ++done) {
      if (random() % 6 == 0) {
        const std::size_t columns = 1 + random() % 300, rows = 1 + random() % 100;
        terminal.resize(random() % 3 == 0 ? 1 + columns % 8 : columns, rows);
      } else {
        terminal.type(random_typing(random));
      }
      if (done % 20 == 0) usleep(20000);  // the program keeps up
      runs = terminal.read_available();
    }
    if (runs) terminal.signal(SIGTERM);
    const int status = terminal.status();
    EXPECT_TRUE(status == 0 || status == 130 || (runs && status == 143)) << status << " before event " << done;
    EXPECT_EQ(terminal.shown().find("Sanitizer"), std::string::npos) << terminal.shown();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace minimind
