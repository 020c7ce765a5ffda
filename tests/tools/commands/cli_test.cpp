#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/all_instruction_sets.h"
#include "tests/support/cases.h"
#include "tests/support/cli.h"
#include "tests/support/http_client.h"
#include "tests/support/running.h"
#include "tests/support/tables.h"

namespace minimind {
namespace {

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

const std::string golden_tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";

TEST_F(Cli, TextThatIsNotUtf8IsAnErrorWithItsOffset) {
  std::ofstream(path("gbk.txt")) << "abc\xB4\xB2\xC7\xB0";
  for (const char* command : {"tokenize", "generate", "perplexity"}) {
    const Outcome outcome = run(std::string(command) + demo + " -f " + path("gbk.txt"));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_NE(outcome.err.find("gbk.txt: is not UTF-8: byte 0xb4 at offset 3"), std::string::npos) << outcome.err;
  }
}

// With each limit, memory ends at another place; below about 20 MB, it is that of the loader of programs.
TEST_F(Cli, LackOfMemoryIsAnErrorWhereverItIsMet) {
  if (is_sanitized || is_emulated()) GTEST_SKIP() << "what runs the program needs memory of its own";
  int failures = 0;
  for (int kilobytes = 16000; kilobytes <= 40000; kilobytes += 300) {
    const std::string limit = "ulimit -v " + std::to_string(kilobytes) + "; ";
    const Outcome outcome = run("generate -q -n 1 -t 1 -p 春" + demo, limit);
    EXPECT_LT(outcome.status, 128) << limit << outcome.err;
    EXPECT_EQ(outcome.status == 0, outcome.err.empty()) << limit << outcome.err;
    failures += outcome.err == "minimind: out of memory\n";
  }
  EXPECT_GT(failures, 0);
}

TEST_F(Cli, EveryInstructionSetReproducesTheGoldenCases) {
  for (const kernels::Table* table : tables()) {
    const std::string isa = std::string("MINIMIND_ISA=") + table->name;
    for (const char* name : {"v1-moe", "v2-lora", "v2-moe-5-experts", "v3-bf16", "v3-yarn", "hf-qwen3-moe-fused"}) {
      const GoldenCase golden = load_golden(name);
      const Outcome compared = run("compare" + model_options(golden) + " --tokens " + joined(golden.tokens) +
                                       " --reference " + golden.folder + "/logits.npy --tolerance 2e-4",
                                   isa);
      EXPECT_EQ(compared.status, 0) << isa << " " << name << ": " << compared.out << compared.err;
      const std::vector<std::int32_t> prompt(golden.tokens.begin(),
                                             golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.prompt_len));
      const Outcome generated = run("generate" + model_options(golden) + " --tokens " + joined(prompt) + " -n " +
                                        std::to_string(golden.greedy.size()) + " --greedy --ignore-eos --json",
                                    isa);
      ASSERT_EQ(generated.status, 0) << generated.err;
      EXPECT_EQ(nlohmann::json::parse(generated.out)["tokens"], golden.greedy) << isa << " " << name;
    }
  }
}

TEST_F(Cli, LogitsWritesWhatCompareReads) {
  const GoldenCase golden = load_golden("v3-dense");
  const std::string tokens = " --tokens " + joined(golden.tokens);
  ASSERT_EQ(run("logits" + model_options(golden) + tokens + " -o " + path("l.npy")).status, 0);
  EXPECT_EQ(read_golden_logits(path("l.npy"), golden.tokens.size(), golden.vocab).size(), golden.logits.size());
  const Outcome same =
      run("compare" + model_options(golden) + tokens + " --reference " + path("l.npy") + " --tolerance 0 --json");
  EXPECT_EQ(same.status, 0) << same.err;
  const auto json = nlohmann::json::parse(same.out);
  EXPECT_EQ(json["worst_difference"], 0);
  EXPECT_EQ(json["top1_agreement"], 1);
  EXPECT_NEAR(json["mean_kl"].get<double>(), 0, 1e-12);
}

TEST_F(Cli, CompareFailsOverTheTolerance) {
  const GoldenCase golden = load_golden("v3-dense");
  const Outcome outcome = run("compare -m " + load_golden("v3-fp32").model_path + " --tokens " + joined(golden.tokens) +
                              " --reference " + golden.folder + "/logits.npy --json");
  EXPECT_EQ(outcome.status, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_GT(json["worst_difference"].get<double>(), 2e-4);
  EXPECT_LT(json["worst_token"].get<std::size_t>(), golden.tokens.size());
  EXPECT_FALSE(json["passed"]);
}

TEST_F(Cli, TokensFileIsEquivalentToTokens) {
  const GoldenCase golden = load_golden("v2-dense");
  std::ofstream(path("ids")) << "[" << golden.tokens[0] << ", " << golden.tokens[1] << "]\n"
                             << golden.tokens[2] << "\n";
  ASSERT_EQ(run("logits" + model_options(golden) + " --tokens-file " + path("ids") + " -o " + path("a.npy")).status, 0);
  const std::string tokens = joined({golden.tokens[0], golden.tokens[1], golden.tokens[2]});
  ASSERT_EQ(run("logits" + model_options(golden) + " --tokens " + tokens + " -o " + path("b.npy")).status, 0);
  EXPECT_EQ(read_whole_file(path("a.npy")), read_whole_file(path("b.npy")));
}

TEST_F(Cli, UsageErrorsExitWithTwoAndOneLine) {
  const std::string model = " -m " + load_golden("v3-dense").model_path;
  for (const std::string& arguments :
       {std::string("sing"), "generate --no-such-option" + model, "generate --temperature -1 -p a" + model,
        "generate --tokens 1 -n -5" + model, "generate --tokens 1 --seed -1" + model, "generate --tokens ''" + model,
        "generate -p '' " + model, "generate --tokens 1 --stop ''" + model,
        "generate --tokens 1 --experts-per-token 2" + model, "generate --tokens 1,x" + model,
        "generate --tokens 1 --top-p 2" + model, "logits --tokens 1" + model, "generate --tokens 1 --type q9" + model,
        "generate --tokens 1 --rope-scaling ntk" + model,
        "tokenize -p a --skip-special --tokenizer " + golden_tokenizer, "generate --tokens 1 --lora a.pth:x" + model}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(lines_in(outcome.err), 1u) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
}

TEST_F(Cli, ErrorsEndWithTheOptionsThatHelp) {
  const std::string model = load_golden("v3-dense").model_path;
  const auto error_with = [&](const std::string& options) {
    return run("generate --tokens 1 -m " + model + " " + options).err;
  };
  EXPECT_TRUE(error_with("--lora a.pth:x").ends_with("(--lora)\n"));
  EXPECT_TRUE(error_with("--lora " + model).ends_with("load a full checkpoint as the model (--model)\n"));
}

TEST_F(Cli, FailuresExitWithOneAndNameTheFile) {
  std::ofstream(path("text.pth")) << "not a checkpoint at all, but a text";
  const std::string whole = read_whole_file(load_golden("v3-dense").model_path);
  std::ofstream(path("cut.pth")) << whole.substr(0, whole.size() / 2);
  std::ofstream(path("x.gguf")) << "GGUF";
  for (const char* name : {"missing.pth", "text.pth", "cut.pth", "x.gguf", "."}) {
    const Outcome outcome = run("inspect -m " + path(name));
    EXPECT_EQ(outcome.status, 1) << name;
    EXPECT_EQ(lines_in(outcome.err), 1u) << name << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(path("")), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "") << name;
  }
}

TEST_F(Cli, AnUnavailableInstructionSetIsAnError) {
  const GoldenCase golden = load_golden("v3-dense");
  const Outcome outcome = run("generate --tokens 1 -m " + golden.model_path, "MINIMIND_ISA=altivec");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("altivec"), std::string::npos) << outcome.err;
}

TEST_F(Cli, ComputeBf16WithoutItsInstructionsIsAnError) {
  const std::string oldest = std::string("MINIMIND_ISA=") + tables().back()->name;
  for (const char* command : {"generate -p a", "bench -p 4 -n 0 -r 1", "logits --tokens 1 -o unwritten.npy"}) {
    const Outcome outcome = run(std::string(command) + demo + " --compute bf16", oldest);
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_NE(outcome.err.find("compute is bf16, but the "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(", expected "), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Cli, ComputeBf16WithOtherWeightsIsAnError) {
  if (kernels::runnable_bf16().count == 0) GTEST_SKIP() << "this machine has no products of bf16";
  for (const char* command : {"generate -p a", "bench -p 4 -n 0 -r 1"}) {
    for (const char* type : {"f32", "q8_0", "iq4_nl"}) {
      const Outcome outcome = run(std::string(command) + demo + " --compute bf16 --type " + type);
      EXPECT_EQ(outcome.status, 2) << command << type;
      EXPECT_NE(outcome.err.find("model.embed_tokens.weight is kept as " + std::string(type) +
                                 ", expected f16 or bf16 for products of bf16 (--type bf16 or --compute f32)"),
                std::string::npos)
          << outcome.err;
    }
  }
}

TEST_F(Cli, ComputeBf16SaysWhatItRounds) {
  if (kernels::runnable_bf16().count == 0) GTEST_SKIP() << "this machine has no products of bf16";
  const Outcome said = run("generate -p a -n 1 --compute bf16" + demo);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_NE(said.err.find("activations and f16 weights are rounded to bf16"), std::string::npos) << said.err;
  const Outcome unsaid = run("generate -p a -n 1 --compute f32" + demo);
  EXPECT_EQ(unsaid.err.find("bf16"), std::string::npos) << unsaid.err;
  EXPECT_EQ(run("generate -p a -n 1 --compute f64" + demo).status, 2);
}

TEST_F(Cli, HelpIsNotAnError) {
  EXPECT_EQ(run("--help").status, 0);
  for (const char* command : {"generate", "inspect", "logits", "compare", "perplexity", "tokenize", "bench"}) {
    const Outcome outcome = run(std::string(command) + " --help");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_NE(outcome.out.find("Usage: minimind " + std::string(command)), std::string::npos);
  }
}

TEST_F(Cli, GenerateWithoutATokenizerPrintsIds) {
  const GoldenCase golden = load_golden("v3-dense");
  const Outcome outcome = run("generate --tokens 3,4 -n 4 --greedy --ignore-eos -m " + golden.model_path);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), ','), 3) << outcome.out;
  EXPECT_EQ(run("generate -p text -m " + golden.model_path).status, 1);
}

TEST_F(Cli, GenerateJsonHasItsFields) {
  const Outcome outcome = run("generate --tokens 3,4 -n 2 --greedy --json -m " + load_golden("v3-dense").model_path);
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["prompt_tokens"], (std::vector<int>{3, 4}));
  EXPECT_EQ(json["tokens"].size(), 2u);
  EXPECT_TRUE(json["text"].is_null());
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_TRUE(json["timings"]["decode_tokens_per_second"].is_number());
}

TEST_F(Cli, GenerateStopsAtAFullContext) {
  const std::string model = " -m " + load_golden("v3-dense").model_path;
  const Outcome full = run("generate --tokens 3,4,5 -c 6 -n 50 --ignore-eos --greedy --json" + model);
  EXPECT_EQ(full.status, 0);
  EXPECT_EQ(nlohmann::json::parse(full.out)["tokens"].size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(full.out)["finish_reason"], "length");
  const Outcome too_long = run("generate --tokens 3,4,5 -c 2" + model);
  EXPECT_EQ(too_long.status, 1);
  EXPECT_NE(too_long.err.find("--ctx-size"), std::string::npos) << too_long.err;
}

TEST_F(Cli, ASeedMakesARunRepeatable) {
  const std::string call =
      "generate --tokens 3,4 -n 20 --temperature 2 --ignore-eos -m " + load_golden("v3-dense").model_path;
  EXPECT_EQ(run(call + " --seed 5").out, run(call + " --seed 5").out);
  EXPECT_NE(run(call + " --seed 5").out, run(call + " --seed 6").out);
  EXPECT_NE(run(call).err.find("seed "), std::string::npos);
}

TEST_F(Cli, AssumedValuesArePrintedUnlessQuiet) {
  const std::string call = "generate --tokens 3 -n 1 --greedy -m " + load_golden("v2-dense").model_path;
  EXPECT_NE(run(call).err.find("num_attention_heads 8"), std::string::npos);
  EXPECT_EQ(run(call + " -q").err, "");
}

TEST_F(Cli, InspectShowsEachValueAndItsSource) {
  const Outcome outcome = run("inspect --json -m " + load_golden("v1-moe").model_path);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["config"]["family"], "v1");
  EXPECT_EQ(json["config"]["num_attention_heads"], 16);
  for (const auto& [name, value] : json["config"].items()) EXPECT_NE(json["sources"][name], "") << name;
  EXPECT_GT(json["tensors"].size(), 10u);
}

TEST_F(Cli, TokenizeAndDecodeAreInverse) {
  const std::string options = " --tokenizer " + golden_tokenizer;
  const std::string text = "Hello, 世界! 123\n  two  spaces";
  std::ofstream(path("text")) << text;
  const Outcome ids = run("tokenize -f " + path("text") + options);
  ASSERT_EQ(ids.status, 0) << ids.err;
  EXPECT_EQ(run("tokenize --decode -p " + ids.out.substr(0, ids.out.size() - 1) + options).out, text);
  std::ofstream(path("jsonl")) << nlohmann::json(text).dump() << "\n\"\"\n";
  const Outcome jsonl = run("tokenize --jsonl < " + path("jsonl") + options);
  EXPECT_EQ(jsonl.out, "[" + ids.out.substr(0, ids.out.size() - 1) + "]\n[]\n");
  const Outcome bad = run("tokenize --decode --jsonl < " + path("jsonl") + options);
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.err.find("line 1"), std::string::npos) << bad.err;
  std::ofstream(path("ids")) << jsonl.out;
  EXPECT_EQ(run("tokenize --decode --jsonl < " + path("ids") + options).out, read_whole_file(path("jsonl")));
}

TEST_F(Cli, AProgramWithoutItsDemoModelRequiresAModel) {
  if (is_emulated()) GTEST_SKIP() << "the program under test is a script, which finds the demo model from anywhere";
  std::filesystem::copy_file(program(), path("minimind"));
  EXPECT_NE(std::system((path("minimind") + " tokenize -p a 2> " + path("err")).c_str()), 0);
  EXPECT_EQ(read_whole_file(path("err")), "minimind: the demo model is neither next to " +
                                              std::filesystem::path(path("minimind")).parent_path().string() +
                                              " nor in ../share/minimind; name a checkpoint with --model\n");
}

TEST_F(Cli, TokenizeRejectsIdsThatAreNone) {
  const std::string options = " --tokenizer " + golden_tokenizer;
  for (const char* line : {"[1.5]", "[\"1\"]", "[2147483648]", "[-2147483649]", "7", "\"7\""}) {
    std::ofstream(path("ids")) << line << "\n";
    const Outcome outcome = run("tokenize --decode --jsonl < " + path("ids") + options);
    EXPECT_EQ(outcome.status, 1) << line;
    EXPECT_NE(outcome.err.find("expected a JSON array of token ids"), std::string::npos) << outcome.err;
  }
  const Outcome unknown = run("tokenize --decode -p 9999,9998" + options);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(unknown.err, "minimind: id 9999 is not in the vocabulary and has no text\n");
  EXPECT_EQ(run("tokenize -p a --skip-special" + options).status, 2);
  EXPECT_EQ(run("tokenize --decode -p 1 --add-special" + options).status, 2);
}

const std::string asking_for_a_poem =
    " -p '<|im_start|>user\n写一首五言绝句，题目：山居<|im_end|>\n<|im_start|>assistant\n' ";

// The demo model with its tokenizer; stdout has only the text.
TEST_F(Cli, TheBundledModelWritesChineseText) {
  const Outcome outcome = run("generate" + demo + asking_for_a_poem + "-n 60 --seed 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GE(std::count(outcome.out.begin(), outcome.out.end(), '\xE3'), 2) << "no full stop in " << outcome.out;
  EXPECT_EQ(outcome.out.find("\xEF\xBF\xBD"), std::string::npos) << "a broken character in " << outcome.out;
  EXPECT_EQ(run("generate" + demo + asking_for_a_poem + "-n 60 --seed 1").out, outcome.out);
}

TEST_F(Cli, TheBundledModelIsTheDefault) {
  if (std::getenv("MINIMIND_PROGRAM")) GTEST_SKIP() << "the program under test is elsewhere";
  EXPECT_EQ(run("inspect").out, run("inspect" + demo).out);
}

TEST_F(Cli, AStopStringEndsTheTextBeforeIt) {
  const std::string call = "generate" + demo + asking_for_a_poem + "-n 60 --seed 1";
  const std::string whole = run(call).out;
  const std::string stopped = run(call + " --stop 。").out;
  EXPECT_EQ(stopped, whole.substr(0, whole.find("。")));
  EXPECT_LT(stopped.size(), whole.size());
}

TEST_F(Cli, ASpecialTokenAsStopStringEndsTheText) {
  const std::string call = "generate" + demo + asking_for_a_poem + "-n 300 --seed 1 --ignore-eos --json";
  EXPECT_EQ(nlohmann::json::parse(run(call).out)["finish_reason"], "length");
  const auto json = nlohmann::json::parse(run(call + " --stop '<|im_end|>'").out);
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["tokens"].back(), 2);
}

TEST_F(Cli, AFullOutputIsTheSameErrorEverywhere) {
  const std::string ids = "--tokens 3,4,5 -m " + load_golden("v3-dense").model_path;
  std::ofstream(path("chat.json")) << R"({"messages": [{"role": "user", "content": "你好"}]})" << '\n';
  std::ofstream(path("lines")) << "\"你好\"\n";
  ASSERT_EQ(run("logits " + ids + " -o " + path("r.npy")).status, 0);
  for (const std::string& call : std::vector<std::string>{
           "--help", "--version", "generate --help", "generate -p 山", "generate --json -p 山", "generate -n 3 " + ids,
           "chat -p 山", "chat --json -p 山", "chat --turns < " + path("lines"), "inspect", "inspect --json",
           "perplexity -p 山居秋暝", "perplexity --json -p 山居秋暝", "tokenize -p 山居",
           "tokenize --jsonl -f " + path("lines"), "render -f " + path("chat.json"),
           "compare " + ids + " --reference " + path("r.npy"), "bench -q -p 4 -n 2 -r 1 -t 1",
           "bench -q -p 4 -n 2 -r 1 -t 1 --json"}) {
    const std::string input = call.find('<') == std::string::npos ? " < /dev/null" : "";
    const int status = std::system((program() + " " + call + input + " > /dev/full 2> " + path("err")).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << call;
    const std::string err = read_whole_file(path("err"));
    EXPECT_TRUE(err.ends_with("minimind: standard output cannot be written: No space left on device\n")) << call << err;
  }
}

TEST_F(Cli, AFullOutputEndsGenerationAtOnce) {
  for (const char* const call : {" generate -p 山 --ignore-eos -n 100000000 -c 1000000 --kv-type q8_0",
                                 " chat -p 山 --ignore-eos -n 100000000 -c 1000000 --kv-type q8_0"}) {
    const int status = std::system(("timeout 60 " + program() + call + " > /dev/full 2> " + path("err")).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << read_whole_file(path("err"));
  }
}

TEST_F(Cli, AClosedPipeEndsGenerationQuietly) {
  const std::string call = program() + " generate -q -p 山 --ignore-eos -n 100000000 -c 1000000 --kv-type q8_0";
  const std::string status = "; echo $? > " + path("status");
  ASSERT_EQ(std::system(("(timeout 60 " + call + " 2> " + path("err") + status + ") | head -c 3 > /dev/null").c_str()),
            0);
  EXPECT_EQ(read_whole_file(path("status")), "141\n");  // SIGPIPE
  EXPECT_EQ(read_whole_file(path("err")), "");
}

TEST_F(Cli, AClosedStderrIsNotAnError) {
  const auto status_of = [](const std::string& call) { return WEXITSTATUS(std::system((program() + call).c_str())); };
  const std::string generate = " generate --tokens 3 -n 1 --greedy -m " + load_golden("v3-dense").model_path;
  EXPECT_EQ(status_of(generate + " > " + path("out") + " 2>&-"), 0);
  EXPECT_EQ(status_of(" generate --tokens 3 -m /nowhere 2>&-"), 1);
}

// A reader of the log that has stopped reading must stop neither the start of the server nor its end.
TEST_F(Cli, AServerServesWithAFullStderr) {
  ASSERT_EQ(mkfifo(path("full").c_str(), 0600), 0);
  const int pipe = open(path("full").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const std::string page(4096, 'x');
  while (write(pipe, page.data(), page.size()) > 0) continue;
  Running server("serve --socket " + path("socket") + demo, path("out"), path("full"));
  EXPECT_TRUE(server.reach([&] {
    try {
      return HttpClient(path("socket")).ask("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200;
    } catch (const std::runtime_error&) {
      return false;  // it does not listen yet
    }
  }));
  EXPECT_EQ(server.interrupt(SIGTERM).first, 0);
  close(pipe);
}

// Commands that wait for input, and commands that would run longer than the test.
TEST_F(Cli, ASignalEndsEveryCommandWithItsStatus) {
  const std::string endless = " -n 100000000 -c 1000000 --ignore-eos --kv-type q8_0";
  for (const std::string& call : std::vector<std::string>{
           "generate", "chat --turns", "chat", "perplexity", "tokenize", "tokenize --jsonl", "render", "render --jsonl",
           "generate -f /dev/stdin", "chat -f /dev/stdin", "chat --turns -f /dev/stdin", "chat -p a --load /dev/stdin",
           "generate -p 山" + endless, "chat -p 山" + endless, "bench -q -r 10000 -t 1", "bench -q -r 10000 -t 4"}) {
    for (const auto& [signal, expected] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
      Running running(call, path("out"), path("err"), Running::Input::silent);
      const auto caught = [&, wanted = signal] { return running.catches(wanted); };
      ASSERT_TRUE(running.reach([&] { return caught() && (running.waits() || running.used() > 0.1); })) << call;
      EXPECT_EQ(running.interrupt(signal).first, expected) << call << ": " << read_whole_file(path("err"));
    }
  }
}

TEST_F(Cli, NohupKeepsAProgramRunning) {
  const std::string call = program() + " perplexity -q -p 山居秋暝";
  const std::string script = "trap '' HUP; " + call + " > " + path("out") + " & kill -HUP $!; wait $!";
  EXPECT_EQ(WEXITSTATUS(std::system(script.c_str())), 0);
}

std::vector<std::int32_t> prompt_of(const Outcome& outcome) {
  return nlohmann::json::parse(outcome.out)["prompt_tokens"].get<std::vector<std::int32_t>>();
}

TEST_F(Cli, GenerateContinuesBosTokenAndTheTextUnlessRaw) {
  std::ofstream(path("text")) << "山居";
  const std::string rest = " -n 1 --greedy --json" + demo;
  const Outcome as_text = run("generate -p 山居" + rest);
  const std::vector<std::int32_t> raw = prompt_of(run("generate --raw -p 山居" + rest));
  std::vector<std::int32_t> expected = raw;
  expected.insert(expected.begin(), 1);
  EXPECT_EQ(prompt_of(as_text), expected);
  EXPECT_NE(as_text.err.find("the prompt is '<|im_start|>' and the text"), std::string::npos) << as_text.err;
  EXPECT_EQ(as_text.err.find("chat template"), std::string::npos) << as_text.err;
  EXPECT_EQ(prompt_of(run("generate -f " + path("text") + rest)), expected);
  EXPECT_EQ(prompt_of(run("generate" + rest + " < " + path("text"))), expected);
  EXPECT_EQ(prompt_of(run("generate -p '<|im_start|>山居'" + rest)), expected) << "once";
  EXPECT_EQ(prompt_of(run("generate --tokens 1,2" + rest)), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(run("generate -q -p 山居" + rest).err, "");
  EXPECT_EQ(run("generate -p 山居 --raw" + rest).err.find("the prompt is"), std::string::npos);
  EXPECT_EQ(run("generate --tokens 1,2 --raw" + rest).status, 2);
}

TEST_F(Cli, GenerateReportsTokensOfThePostProcessor) {
  nlohmann::json tokenizer = nlohmann::json::parse(read_whole_file(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json"));
  tokenizer["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"<|im_end|>", 2}}, {"cls", {"<|im_start|>", 1}}};
  std::ofstream(path("tokenizer.json")) << tokenizer;
  const std::string with = " -p 山 --tokenizer " + path("tokenizer.json");
  const std::string raw = run("tokenize" + with).out, id = raw.substr(0, raw.size() - 1);
  EXPECT_EQ(run("tokenize -p 山 -m " MINIMIND_SOURCE_DIR "/weights/demo").out, raw);
  EXPECT_EQ(run("tokenize --add-special" + with).out, "1," + id + ",2\n");
  const Outcome outcome = run("generate -n 1 --greedy --json" + with + demo);
  EXPECT_EQ(prompt_of(outcome), (std::vector<std::int32_t>{1, std::stoi(id), 2}));
  EXPECT_NE(outcome.err.find("'<|im_start|>', the text and '<|im_end|>', which the tokenizer adds"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(prompt_of(run("generate --raw -n 1 --greedy --json" + with + demo)),
            std::vector<std::int32_t>{std::stoi(id)});
}

TEST_F(Cli, AnUnknownCommandIsNamed) {
  const Outcome outcome = run("chatter");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("'chatter'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("generate"), std::string::npos) << outcome.err;
}

TEST_F(Cli, ATruncationOfTheTokenizerIsNamed) {
  nlohmann::json tokenizer = nlohmann::json::parse(read_whole_file(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json"));
  tokenizer["truncation"] = {{"max_length", 1}, {"direction", "Right"}, {"strategy", "LongestFirst"}, {"stride", 0}};
  std::ofstream(path("tokenizer.json")) << tokenizer;
  const Outcome outcome = run("generate -p 山水 -n 1 --json --tokenizer " + path("tokenizer.json") + demo);
  EXPECT_NE(outcome.err.find("tokenizer.json: truncation is not applied"), std::string::npos) << outcome.err;
  const Outcome plain = run("generate -p 山水 -n 1 --json" + demo);
  EXPECT_EQ(prompt_of(outcome).size(), 2u) << "more than the 1 of its truncation";
  EXPECT_EQ(plain.err.find("truncation"), std::string::npos) << plain.err;
}

// Opening a FIFO in the usual way waits for another process, for ever if none comes.
TEST_F(Cli, AFifoUnderAnyNameEndsTheCommandAtOnce) {
  const std::string fifo = path("fifo"), text = path("text");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(text) << "{\"prompt\": \"a\"}\n";
  const std::string commands[] = {"inspect " + fifo,
                                  "generate -f " + fifo,
                                  "generate -p a -m " + fifo,
                                  "generate -p a --config " + fifo,
                                  "generate -p a --lora " + fifo,
                                  "generate -p a --tokenizer " + fifo,
                                  "generate -p a --json-schema " + fifo,
                                  "generate -p a --grammar " + fifo,
                                  "generate -p a --draft " + fifo,
                                  "chat -p a --session " + fifo,
                                  "chat -p a --tools " + fifo,
                                  "chat -p a --template " + fifo,
                                  "tokenize -f " + fifo,
                                  "render -f " + fifo,
                                  "validate --json-schema " + fifo,
                                  "validate --grammar " + fifo,
                                  "perplexity -f " + fifo,
                                  "logits --tokens-file " + fifo + " -o " + path("out.npy"),
                                  "logits --tokens 1,2 -o " + fifo,
                                  "compare --tokens 1,2 --reference " + fifo,
                                  "convert " + fifo + " " + path("out.gguf"),
                                  "convert " MINIMIND_SOURCE_DIR "/weights/demo/model.pth " + fifo,
                                  "batch " + fifo + " -o " + path("out.jsonl"),
                                  "batch " + text + " -o " + fifo,
                                  "serve --port 0 -m " + fifo};
  for (const std::string& command : commands) {
    const Outcome outcome = run(command, "timeout 20");
    EXPECT_TRUE(outcome.status >= 1 && outcome.status <= 3) << command << ": " << outcome.status;
    EXPECT_NE(outcome.err.find(fifo), std::string::npos) << command << ": " << outcome.err;
  }
}

TEST_F(Cli, TextsMayBePiped) {
  const auto piped = [&](const std::string& text, const std::string& arguments) {
    std::ofstream(path("text")) << text;
    const std::string command = program() + " " + arguments + demo + " > " + path("piped");
    EXPECT_EQ(std::system(("cat " + path("text") + " | " + command).c_str()), 0) << arguments;
    return read_whole_file(path("piped"));
  };
  EXPECT_EQ(piped("春眠", "tokenize -f /dev/stdin"), run("tokenize -p 春眠" + demo).out);
  EXPECT_NE(piped("{\"rope_theta\": 12345}", "inspect --config /dev/stdin").find("12345"), std::string::npos);
}

TEST_F(Cli, StandardInputThatCannotBeReadIsNoEmptyText) {
  for (const std::string command : {"tokenize", "chat --turns", "validate --regex x"}) {
    const Outcome outcome = run(command + (command[0] == 'v' ? "" : demo) + " < /tmp");
    EXPECT_NE(outcome.err.find("standard input: cannot be read: Is a directory"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.status, 0) << command;
  }
}

TEST_F(Cli, AnEndlessStandardInputIsAnError) {
  EXPECT_EQ(run("validate --regex x < /dev/zero").err,
            "minimind: standard input: is too long, expected at most 67108864 bytes\n");
}

TEST_F(Cli, AMissingModelIsNamed) {
  const Outcome outcome = run("generate -p text -m " + path("nowhere.pth"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("nowhere.pth: cannot be opened"), std::string::npos) << outcome.err;
}

TEST_F(Cli, CtrlCEndsGenerationWithTheTextSoFar) {
  Running running(
      "generate --tokens 3,4 -n 1000000 -c 1000000 -t 1 --ignore-eos --json -m " + load_golden("v3-dense").model_path,
      path("out"), path("err"));
  ASSERT_TRUE(running.reach(0.3));
  EXPECT_EQ(running.interrupt(SIGINT).first, 130) << read_whole_file(path("err"));
  const auto json = nlohmann::json::parse(read_whole_file(path("out")));
  EXPECT_EQ(json["finish_reason"], "interrupted");
  EXPECT_GT(json["tokens"].size(), 0u);
}

}  // namespace
}  // namespace minimind
