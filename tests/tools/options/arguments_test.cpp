#include "tools/options/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/cli.h"
#include "tests/support/tables.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  return arguments;
}

// Returns the error of a call; empty if there is none.
std::string complaint_about(const std::string& line) {
  static const CommandLine command_line(nullptr);
  try {
    check_arguments(command_line.app(), split(line));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void expect_complaint(const std::string& line, const std::string& part) {
  EXPECT_NE(complaint_about(line).find(part), std::string::npos) << line << ": " << complaint_about(line);
}

TEST(Arguments, AnUnknownOptionSuggestsTheNearest) {
  for (const char* command : {"generate", "chat"}) {
    const auto expect = [&](const std::string& option, const std::string& part) {
      expect_complaint(command + std::string(" ") + option, part);
    };
    expect("--temp 0.5", "unknown option '--temp'; did you mean --temperature?");
    expect("--temperatur 0.5", "did you mean --temperature?");
    expect("--temprature=0.5", "did you mean --temperature?");
    expect("-temp 0.5", "unknown option '-temp'; did you mean --temperature?");
    expect("-top_k 5", "did you mean --top-k?");
    expect("-prompt hello", "did you mean --prompt?");
    expect("-max_tokens 5", "did you mean --max-tokens?");
    expect("--max_tokens 5", "did you mean --max-tokens?");
    expect("--Seed 5", "did you mean --seed?");
    expect("--top_p 0.9", "did you mean --top-p?");
    expect("--qiuet", "did you mean --quiet?");
    expect("-z", "unknown option '-z'");
    expect("--flux-capacitor", "unknown option '--flux-capacitor'; minimind");
  }
}

TEST(Arguments, SuggestsOptionsForThoseOfMiniMind) {
  expect_complaint("chat --open_thinking 1", "did you mean --think?");
  expect_complaint("chat --max_new_tokens 5", "did you mean --max-tokens?");
  expect_complaint("chat --max_seq_len 5", "did you mean --ctx-size?");
  expect_complaint("chat --lora_weight lora_medical", "did you mean --lora PATH?");
  expect_complaint("chat --inference_rope_scaling", "did you mean --rope-scaling yarn?");
  expect_complaint("chat --history_cnt 4", "did you mean --historys?");
  expect_complaint("chat --weight full_sft", "name the checkpoint itself");
  expect_complaint("chat --hidden_size 512", "the checkpoint defines its shape");
  expect_complaint("chat --device cpu", "models run on the CPU");
}

TEST(Arguments, AnOptionOfAnotherCommandNamesThatCommand) {
  expect_complaint("generate --historys 4", "only other commands have it, such as minimind chat");
  expect_complaint("generate --think", "only other commands have it, such as minimind chat");
  expect_complaint("generate --open_thinking 1", "minimind chat has --think");
  expect_complaint("inspect --prompt x", "only other commands have it, such as minimind generate");
  expect_complaint("chat --version", "type minimind version");
  expect_complaint("convert -m a.pth b.gguf", "as in minimind convert model.pth model.gguf");
  expect_complaint("convert a.pth --output b.gguf", "as in minimind convert model.pth model.gguf");
}

TEST(Arguments, AnOptionBeforeTheCommandIsAnError) {
  expect_complaint("--temperature 1 chat", "put options after the command");
  expect_complaint("-m x.pth", "put options after the command");
}

TEST(Arguments, AnUnknownCommandSuggestsTheNearest) {
  expect_complaint("chatt", "unknown command 'chatt', expected generate, chat,");
  expect_complaint("chatt", "did you mean chat?");
  expect_complaint("perp", "did you mean perplexity?");
  expect_complaint("Generate", "did you mean generate?");
  expect_complaint("benchmark", "did you mean bench?");
  expect_complaint("halp", "did you mean help?");
  expect_complaint("verison", "did you mean version?");
  EXPECT_EQ(complaint_about("sing").find("did you mean"), std::string::npos);
}

TEST(Arguments, AModelWithoutACommandSuggestsChat) {
  expect_complaint("out/x.pth", "type minimind chat out/x.pth");
  expect_complaint("model.gguf -p hello", "type minimind chat model.gguf");
}

TEST(Arguments, TextWithoutItsOptionSuggestsPrompt) {
  expect_complaint("chat 你好", "'你好' is not a file or folder; text follows -p, as in minimind chat -p '你好'");
  expect_complaint("generate -n 5 hello", "as in minimind generate -p 'hello'");
  EXPECT_EQ(complaint_about("inspect nothing"), "");
  EXPECT_EQ(complaint_about("chat nothing.pth"), "");
  EXPECT_EQ(complaint_about("chat ./nothing"), "");
  EXPECT_EQ(complaint_about("chat nothing --help"), "");
}

TEST(Arguments, AValueIsNotAnOption) {
  for (const char* line : {"generate -p -temp", "generate -p --temp", "generate --prompt --temp", "generate -n5 -pgo",
                           "generate --lora=a.pth --lora=b.pth", "chat x.pth -qt2", "chat --stop -prompt", "bench -r 3",
                           "generate -- --temp", "convert a.pth b.gguf --type=f16"}) {
    EXPECT_EQ(complaint_about(line), "") << line;
  }
}

TEST(Arguments, MissingValuesAndRepetitionsAreErrors) {
  expect_complaint("generate --temperature", "--temperature requires a value");
  expect_complaint("generate -n", "-n requires a value");
  expect_complaint("generate --seed 1 --seed 2", "--seed is repeated");
  expect_complaint("generate -n 1 --max-tokens 2", "--max-tokens is repeated");
  expect_complaint("chat x.pth hello", "'hello' is an argument too many; text follows -p");
  expect_complaint("convert a b c", "'c' is an argument too many; see minimind convert --help");
}

TEST(Arguments, HelpAndVersionBecomeOptions) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(expand_help({"help"}), Words{"--help"});
  EXPECT_EQ(expand_help({"help", "chat"}), (Words{"chat", "--help"}));
  EXPECT_EQ(expand_help({"version"}), Words{"--version"});
  EXPECT_EQ(expand_help({"chat", "help"}), (Words{"chat", "help"}));
  EXPECT_EQ(expand_help({}), Words{});
}

class ArgumentsCli : public Cli {};

TEST_F(ArgumentsCli, HelpVersionAndNoArgumentsAreNotErrors) {
  const Outcome bare = run("");
  EXPECT_EQ(bare.status, 0) << bare.err;
  EXPECT_NE(bare.out.find("perplexity"), std::string::npos) << bare.out;
  EXPECT_EQ(run("help").out, bare.out);
  EXPECT_EQ(run("--help").out, bare.out);
  EXPECT_EQ(run("help").status, 0);
  EXPECT_EQ(run("help chat").out, run("chat --help").out);
  EXPECT_EQ(run("help chat").status, 0);
  EXPECT_EQ(run("help caht").status, 2);
  EXPECT_EQ(run("help help").out, bare.out);
  EXPECT_EQ(run("help version").out, bare.out);
  EXPECT_EQ(run("help completion").out, bare.out);
  EXPECT_EQ(run("version").status, 0);
  EXPECT_EQ(run("version").out, run("--version").out);
}

TEST_F(ArgumentsCli, VersionTellsWhatTheProgramIsMadeOf) {
  const std::string text = run("--version").out;
  EXPECT_TRUE(text.starts_with("minimind " MINIMIND_VERSION "\ncommit: ")) << text;
  EXPECT_NE(text.find("\ncompiler: "), std::string::npos) << text;
  EXPECT_NE(text.find("\ninstruction sets of this machine: "), std::string::npos) << text;
  for (const char* const library : {"Boost", "CLI11", "fmt", "nlohmann-json", "utf8proc", "xsimd", "zlib"}) {
    EXPECT_NE(text.find(std::string(library) + " "), std::string::npos) << library << ": " << text;
  }
}

TEST_F(ArgumentsCli, NoExampleOfTheHelpIsAUsageError) {
  const std::string demo_folder = MINIMIND_SOURCE_DIR "/weights/demo/";
  std::filesystem::create_directories(path("out"));
  std::filesystem::copy_file(demo_folder + "tokenizer.json", path("out/tokenizer.json"));
  for (const char* model : {"out/full_sft_768.pth", "out/pretrain_768.pth", "q4.gguf", "q8.gguf", "minimind.gguf"}) {
    std::filesystem::copy_file(demo_folder + "model.pth", path(model));
  }
  std::ofstream(path("keys.txt")) << "a-key-of-sufficient-length-0123456789\n";
  for (const char* file : {"prompt.txt", "text.txt", "ids.txt"}) std::ofstream(path(file)) << "1 2";
  std::ofstream(path("conversation.json")) << R"({"messages": []})";
  for (const char* file : {"chat.jinja", "conversations.jsonl", "R.npy"}) std::ofstream(path(file)) << "";
  std::filesystem::create_symlink(program(), path("minimind"));
  for (const HelpExample& example : help_examples()) {
    const std::string call(example.call);
    if (call.starts_with("minimind bench")) continue;  // takes half a minute
    const bool never_ends = call.starts_with("minimind serve") || call.starts_with("minimind watch");
    const std::string limit = never_ends ? "timeout 1 " : "";
    const std::string script =
        "cd " + path("") + " && PATH=.:$PATH && " + limit + call + " < " + path("conversations.jsonl");
    const int status = std::system(("(" + script + ") > " + path("out.txt") + " 2> " + path("err.txt")).c_str());
    EXPECT_NE(WEXITSTATUS(status), 2) << call << ": " << read_whole_file(path("err.txt"));
  }
}

TEST_F(ArgumentsCli, EveryCommandTakesAModelByPosition) {
  const std::string model = load_golden("v3-dense").model_path;
  const std::string demo_model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  const auto expect_same = [&](const std::string& command, const std::string& path, const std::string& options) {
    const Outcome with = run(command + " -m " + path + " " + options);
    const Outcome without = run(command + " " + path + " " + options);
    EXPECT_EQ(with.status, 0) << command << with.err;
    EXPECT_EQ(without.status, 0) << command << without.err;
    EXPECT_EQ(without.out, with.out) << command;
    EXPECT_EQ(run(command + " " + path + " -m " + path + " " + options).status, 0) << command;
    const Outcome both = run(command + " " + path + " -m other.pth " + options);
    EXPECT_EQ(both.status, 2) << command;
    EXPECT_NE(both.err.find("the model is given twice"), std::string::npos) << both.err;
    EXPECT_EQ(run(command + " -m '' " + options).status, 2) << command;
  };
  expect_same("generate", model, "--tokens 1,2 -n 2 --greedy");
  expect_same("chat", demo_model, "-p 山居 -n 2 --greedy");
  expect_same("inspect", model, "");
  expect_same("logits", model, "--tokens 1,2 -o " + path("l.npy"));
  expect_same("compare", model, "--tokens 1,2 --reference " + path("l.npy"));
  expect_same("perplexity", model, "--tokens 1,2,3");
  expect_same("tokenize", demo_model, "-p 山居");
  std::ofstream(path("c.json")) << R"({"messages": [{"role": "user", "content": "a"}]})";
  expect_same("render", demo_model, "-f " + path("c.json"));
  EXPECT_EQ(run("bench " + model + " -p 1 -n 1 -r 1 -t 1").status, 0);
}

TEST_F(ArgumentsCli, AnEmptyNameOfAFileIsNotLikeNoOption) {
  const std::string model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  for (const std::string call :
       {"generate -p a -n 1 --json-schema ''", "generate -p a -n 1 --grammar ''", "generate -n 1 -f ''",
        "perplexity -p 山居 --against ''", "inspect --config ''", "inspect --tokenizer ''", "inspect --lora ''",
        "compare --tokens 1,2 --reference ''"}) {
    const Outcome outcome = run(call + " -m " + model);
    EXPECT_EQ(outcome.status, 2) << call;
    EXPECT_NE(outcome.err.find(": the value is empty"), std::string::npos) << call << ": " << outcome.err;
  }
  for (const std::string& call : {"'' " + path("a.gguf"), model + " ''", model + " " + path("a.gguf") + " --plan ''",
                                  model + " " + path("a.gguf") + " --type q8_0 --calibrate ''"}) {
    const Outcome outcome = run("convert " + call);
    EXPECT_EQ(outcome.status, 2) << call;
    EXPECT_NE(outcome.err.find(": the value is empty"), std::string::npos) << call << ": " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("a.gguf"))) << call;
  }
}

TEST_F(ArgumentsCli, AnEmptyListOrNameIsNotLikeNoOption) {
  std::ofstream(path("requests.jsonl")) << "\"春\"\n";
  for (const std::string& call :
       {std::string("trace --tokens 1 --layers ''"), std::string("bench -p 1 -n 1 -r 1 --type ''"),
        "batch " + path("requests.jsonl") + " -n 1 -o " + path("out.jsonl") + " --model-name ''"}) {
    const Outcome outcome = run(call + " -m " MINIMIND_SOURCE_DIR "/weights/demo/model.pth");
    EXPECT_EQ(outcome.status, 2) << call;
    EXPECT_NE(outcome.err.find(": the value is empty; omit the option"), std::string::npos) << call << outcome.err;
  }
}

TEST_F(ArgumentsCli, AMalformedNumberIsAUsageError) {
  const std::string call = "generate --tokens 1 -m " + load_golden("v3-dense").model_path + " ";
  for (const char* option : {"-c", "-n", "-t", "--seed", "--top-k", "--heads", "--speculate", "--dry-allowed-length"}) {
    for (const char* bad : {"1e9", "1.5", "12abc", "-1", "''", "99999999999999999999"}) {
      const Outcome outcome = run(call + option + " " + bad);
      EXPECT_EQ(outcome.status, 2) << option << " " << bad;
      EXPECT_NE(outcome.err.find("whole number"), std::string::npos) << option << " " << bad << ": " << outcome.err;
    }
  }
  for (const char* option : {"--temperature", "--top-p", "--min-p", "--repeat-penalty", "--dry-base"}) {
    for (const char* bad : {"abc", "nan", "inf", "0x10", "1,5", "''"}) {
      const Outcome outcome = run(call + option + " " + bad);
      EXPECT_EQ(outcome.status, 2) << option << " " << bad;
      EXPECT_NE(outcome.err.find("expected"), std::string::npos) << option << " " << bad << ": " << outcome.err;
    }
  }
}

TEST_F(ArgumentsCli, TypesHaveTheirCommonAliases) {
  const std::string model = load_golden("v3-dense").model_path;
  const auto tokens = [&](const std::string& type) {
    return run("generate --tokens 1,2 -n 4 --greedy -q --type " + type + " --kv-type FP16 -m " + model).out;
  };
  EXPECT_EQ(tokens("fp16"), tokens("f16"));
  EXPECT_EQ(tokens("Q8_0"), tokens("q8_0"));
  EXPECT_NE(tokens("BF16"), "");
  EXPECT_EQ(run("convert " + model + " " + path("x.gguf") + " --type Q8_0 --embedding-type BFloat16").status, 0);
  EXPECT_EQ(run("bench -m " + model + " -p 1 -n 0 -r 1 -t 1 --type fp16,Q8_0").status, 0);
  std::string isa = tables().back()->name;
  std::ranges::transform(isa, isa.begin(), [](unsigned char c) { return std::toupper(c); });
  EXPECT_EQ(run("generate --tokens 1 -n 1 -m " + model, "MINIMIND_ISA=" + isa).status, 0);
  const Outcome unknown = run("generate --tokens 1 --type q8 -m " + model);
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("did you mean q8_0?"), std::string::npos) << unknown.err;
}

TEST_F(ArgumentsCli, AnUnknownValueSuggestsTheNearest) {
  EXPECT_NE(run("inspect --rope-scaling YaRN").err.find("did you mean yarn?"), std::string::npos);
  std::ofstream(path("c.json")) << R"([{"role": "usr", "content": "a"}])";
  const Outcome role = run("chat" + demo + " -p a --load " + path("c.json"));
  EXPECT_NE(role.err.find("did you mean user?"), std::string::npos) << role.err;
}

}  // namespace
}  // namespace minimind
