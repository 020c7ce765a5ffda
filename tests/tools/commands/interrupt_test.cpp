#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/cli.h"
#include "tests/support/peak_memory.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/running.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// Under sanitizers and emulation.
const double slow = slowness == 1 ? 1 : 3, most_seconds = slowness == 1 ? 1 : 10;

// A MiniMind-3 of zeros, without most of its bytes on the disk.
void write_large_model(const std::string& path) {
  constexpr std::size_t hidden = 768, layers = 12, inner = 2432;
  nlohmann::ordered_json header;
  std::size_t size = 0;
  const auto add = [&](const std::string& name, const std::vector<std::size_t>& shape) {
    std::size_t bytes = 4;
    for (const std::size_t extent : shape) bytes *= extent;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {size, size + bytes}}};
    size += bytes;
  };
  add("model.embed_tokens.weight", {6400, hidden});
  add("model.norm.weight", {hidden});
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    for (const char* const norm : {"input_layernorm.weight", "post_attention_layernorm.weight"})
      add(layer + norm, {hidden});
    for (const char* const norm : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) add(layer + norm, {96});
    for (const char* const name : {"q", "o"}) add(layer + "self_attn." + name + "_proj.weight", {hidden, hidden});
    for (const char* const name : {"k", "v"}) add(layer + "self_attn." + name + "_proj.weight", {hidden / 2, hidden});
    for (const char* const name : {"gate", "up"}) add(layer + "mlp." + name + "_proj.weight", {inner, hidden});
    add(layer + "mlp.down_proj.weight", {hidden, inner});
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << text;
  file.close();
  fs::resize_file(path, sizeof length + text.size() + size);
}

class Interrupt : public Cli {
 protected:
  Interrupt() {
    fs::create_directories(path("work"));
    write_large_model(path("model.safetensors"));
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(std::string(MINIMIND_SOURCE_DIR "/weights/demo/") + name, path(name));
    }
    std::ofstream(path("words.txt")) << words(3'000'000);
  }

  std::string model() const { return " -m " + path("model.safetensors") + " "; }

  static std::string words(std::size_t count) {
    std::string text;
    unsigned state = 1;
    for (std::size_t i = 0; i < count; ++i) {
      for (int letter = 0; letter < 5; ++letter) {
        state = state * 1664525 + 1013904223;
        text += static_cast<char>('a' + (state >> 24) % 26);
      }
      text += ' ';
    }
    return text;
  }

  // The names in the folder that commands write to.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path("work"))) names.push_back(entry.path().filename().string());
    return names;
  }

  // Expects that the command ends with the signal's status at once, in several of its phases, and leaves nothing. How
  // far it is after so many seconds depends on the machine: it may not have begun to write, or have ended by itself.
  void expect_answers(const std::string& arguments, const std::vector<double>& seconds, const std::string& message) {
    int signal = SIGINT;
    std::size_t interrupted = 0;
    for (const double at : seconds) {
      Running running(arguments, path("out"), path("err"));
      if (!running.reach([&] { return running.used() >= at * slow && running.catches(signal); })) continue;
      interrupted += expect_ends(running, signal, arguments,
                                 interrupted == 0 ? std::vector{message, usual} : std::vector{message});
      signal = signal == SIGINT ? SIGTERM : SIGINT;
    }
    EXPECT_GT(interrupted, 0) << arguments << ": " << read_whole_file(path("err"));
  }

  // Returns whether the command has read the model after so many seconds: how long that takes is the disk's matter.
  bool works_after(double seconds, const std::string& arguments) {
    Running running(arguments, path("out"), path("err"));
    if (!running.reach(seconds * slow)) return false;
    running.interrupt(SIGINT);
    return read_whole_file(path("err")).find("interrupted before the end") == std::string::npos;
  }

  // Returns false if it ended by itself at the same moment.
  bool expect_ends(Running& running, int signal, const std::string& arguments,
                   const std::vector<std::string>& messages) {
    const auto [status, latency] = running.interrupt(signal);
    if (status == 0 && latency < 0.1 * most_seconds) return false;
    EXPECT_EQ(status, 128 + signal) << arguments << ": " << read_whole_file(path("err"));
    EXPECT_LT(latency, most_seconds) << arguments;
    const std::string said = read_whole_file(path("err"));
    EXPECT_TRUE(std::ranges::any_of(messages, [&](const auto& one) { return said.find(one) != std::string::npos; }))
        << arguments << ": " << said;
    EXPECT_TRUE(left_behind().empty()) << arguments << ": " << left_behind().front();
    return true;
  }

  const std::string usual = "interrupted before the end";
};

TEST_F(Interrupt, EndsEveryPhaseAtOnce) {
  std::string tokens = "5";
  for (int i = 0; i < 4000; ++i) tokens += ",5";
  std::ofstream(path("tokens")) << tokens;
  // Of results shorter and longer than the buffer of standard output.
  const std::string lines_of_both =
      nlohmann::json(words(2'000)).dump() + "\n" + nlohmann::json(words(20'000)).dump() + "\n";
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += lines_of_both;
  std::ofstream(path("lines.jsonl")) << lines;
  std::ofstream(path("any.gbnf")) << "root ::= [a-z ]*";
  expect_answers("inspect" + model(), {0.02, 0.1}, usual);
  expect_answers("generate -q" + model() + "-p a --type iq4_nl", {0.02, 0.2}, usual);
  expect_answers("logits" + model() + "--tokens-file " + path("tokens") + " -o " + path("work/l.npy"), {0.05, 0.5, 2},
                 "interrupted; " + path("work/l.npy") + " was not written");
  expect_answers("tokenize -f " + path("words.txt"), {0.02, 0.2, 0.5}, usual);
  expect_answers("perplexity -q" + model() + "-f " + path("words.txt"), {0.02, 0.5, 1}, "interrupted ");
  expect_answers("validate --grammar " + path("any.gbnf") + " " + path("words.txt"), {0.02, 0.1}, usual);
  expect_answers("tokenize --jsonl -f " + path("lines.jsonl"), {0.3, 1}, usual);
  EXPECT_TRUE(read_whole_file(path("out")).empty() || read_whole_file(path("out")).ends_with('\n')) << "half a line";
}

TEST_F(Interrupt, EndsEveryPhaseOfAConversion) {
  const std::string calibrated = "--calibrate " + path("words.txt");
  for (const std::string& options : std::vector<std::string>{"o.gguf --type q6_k", "o.gguf --type iq4_nl " + calibrated,
                                                             "o.gguf --size 80MB " + calibrated}) {
    const std::string out = path("work/") + options.substr(0, options.find(' '));
    expect_answers("convert -q " + path("model.safetensors") + " " + path("work/") + options, {0.02, 0.3},
                   "interrupted; " + out + " was not written");
  }
}

// Signals arrive while the files are being written.
TEST_F(Interrupt, LeavesNoUnfinishedFile) {
  for (const char* const out : {"o.gguf", "o.pth", "folder/"}) {
    const std::string arguments = "convert -q " + path("model.safetensors") + " " + path("work/") + out;
    for (const int signal : {SIGINT, SIGTERM}) {
      Running running(arguments, path("out"), path("err"));
      ASSERT_TRUE(running.reach([&] {
        for (const auto& entry : fs::recursive_directory_iterator(path("work"))) {
          if (entry.path().extension() == ".part" && entry.file_size() > 0) return true;
        }
        return false;
      })) << out;
      expect_ends(running, signal, arguments, {"interrupted; " + path("work/") + out + " was not written"});
    }
  }
}

// These commands have something to show of what they did before.
TEST_F(Interrupt, EndsTheWorkOfAModelWithItsResultSoFar) {
  std::string tokens = "5";
  for (int i = 0; i < 20'000; ++i) tokens += ",5";
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"generate" + model() + "-t 1 -c 30000 --tokens " + tokens, "ended by an interrupt"},
           {"perplexity" + model() + "-t 1 -c 2000 --tokens " + tokens, "interrupted after "},
           {"bench -r 1000 -t 1 -d 2000" + model(), "interrupted; the results so far are printed"}}) {
    double at = 1;
    while (at < 30 && !works_after(at, arguments)) at *= 2;
    expect_answers(arguments, {1.5 * at, 2 * at}, message);
  }
}

// Freeing memory in pages of 4 KB takes about as long as an interrupted program may.
TEST_F(Interrupt, MostMemoryOfABenchIsInHugePages) {
  if (!can_measure_memory || is_emulated()) GTEST_SKIP() << "sanitizers and emulators have pages of their own";
  if (read_whole_file("/sys/kernel/mm/transparent_hugepage/enabled").find("[never]") != std::string::npos) GTEST_SKIP();
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_minflt;
  };
  const long before = faults();
  EXPECT_EQ(run("bench -q -r 1 -p 4 -n 2" + model()).status, 0) << read_whole_file(path("err"));
  EXPECT_LT(faults() - before, static_cast<long>(fs::file_size(path("model.safetensors")) / 4096 / 2));
}

TEST_F(Interrupt, EndsReadingALongMessage) {
  const std::string arguments = "chat" + model() + "-f " + path("words.txt");
  Running running(arguments, path("out"), path("err"));
  ASSERT_TRUE(running.reach([&] { return read_whole_file(path("err")).find("seed") != std::string::npos; }));
  ASSERT_TRUE(running.reach(running.used() + 0.2 * slow));
  expect_ends(running, SIGTERM, arguments, {"your message is removed"});
}

TEST_F(Interrupt, ABatchSaysHowFarItCameAndLeavesNoLock) {
  const unsigned count = cases(400);
  std::ofstream requests(path("in.jsonl"));
  for (unsigned i = 0; i < count; ++i)
    requests << R"({"prompt": "春", "max_tokens": 64, "ignore_eos": true})"
             << "\n";
  requests.close();
  const std::string arguments =
      "batch -t 1 --seed 1 --parallel 4 " + path("in.jsonl") + " -o " + path("results") + demo;
  {
    Running running(arguments, path("out"), path("err"));
    ASSERT_TRUE(running.reach([&] { return fs::exists(path("results")) && fs::file_size(path("results")) > 0; }));
    expect_ends(running, SIGINT, arguments, {" of " + std::to_string(count) + " requests; the same command continues"});
  }
  EXPECT_FALSE(fs::exists(path(".results.lock")));
  EXPECT_FALSE(fs::exists(path(".results.errors.lock")));
  EXPECT_TRUE(read_whole_file(path("results")).ends_with('\n'));
  const Outcome continued = run(arguments);
  EXPECT_EQ(continued.status, 0) << continued.err;
  EXPECT_NE(continued.err.find("continuing after "), std::string::npos) << continued.err;
  const std::string again = run(arguments).err;
  EXPECT_NE(again.find("remove this file and " + path("results") + ".errors to start over"), std::string::npos)
      << again;
}

TEST_F(Interrupt, AProgressBarIsClearedFromTheTerminal) {
  const std::string command =
      "exec " + program() + " convert " + path("model.safetensors") + " " + path("work/o.gguf") + " --type q6_k";
  PseudoTerminal terminal([&] {
    setenv("TERM", "xterm", 1);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return 127;
  });
  ASSERT_TRUE(terminal.wait_for("convert [")) << testing::PrintToString(terminal.shown());
  terminal.signal(SIGINT);
  EXPECT_EQ(terminal.status(), 130);
  EXPECT_TRUE(terminal.wait_for("\r\x1b[Kminimind: interrupted; ")) << testing::PrintToString(terminal.shown());
  EXPECT_TRUE(left_behind().empty());
}

}  // namespace
}  // namespace minimind
