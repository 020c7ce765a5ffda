// -m FOLDER with a folder like MiniMind's out/.

#include <gtest/gtest.h>
#include <utime.h>

#include <fstream>

#include "tests/support/cli.h"
#include "tests/support/pseudo_terminal.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

const std::string demo_model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";

class CheckpointChoice : public Cli {
 protected:
  // A copy of `from` in the folder saved/, last written in the given year.
  std::string put(const std::string& from, const std::string& name, int year) const {
    fs::create_directories(path("saved"));
    const std::string to = path("saved/" + name);
    fs::copy(from, to, fs::copy_options::recursive);
    const std::time_t time = static_cast<std::time_t>(year - 1970) * 31'557'600;
    const utimbuf times{time, time};
    if (fs::is_directory(to)) {
      for (const auto& entry : fs::directory_iterator(to)) utime(entry.path().c_str(), &times);
    } else {
      utime(to.c_str(), &times);
    }
    return to;
  }

  void put_tokenizer() const {
    fs::create_directories(path("model"));
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      fs::copy(std::string(MINIMIND_SOURCE_DIR "/weights/demo/") + name, path("model/") + name);
    }
  }

  PseudoTerminal chat(const std::string& arguments, const std::string& before = "exec ",
                      const std::string& quiet = "-q") const {
    const std::string command = before + program() + " chat --greedy -n 3 " + quiet + " " + arguments;
    setenv("XDG_STATE_HOME", path("state").c_str(), 1);
    return PseudoTerminal([&] { return execl("/bin/sh", "sh", "-c", command.c_str(), nullptr); });
  }
};

TEST_F(CheckpointChoice, SeveralAreListedNewestFirst) {
  put(demo_model, "old.pth", 2001);
  put(demo_model, "new.pth", 2021);
  put(*load_golden("v3-lora").lora_path, "lora_identity.pth", 2022);
  put(demo_model, "full_sft_768_resume.pth", 2011);
  put(load_golden("hf-llama").folder, "exported", 2016);
  std::ofstream(path("saved/log.txt")) << "no checkpoint";
  fs::create_directories(path("saved/empty"));
  for (const std::string command : {"inspect -m ", "generate -p a -m ", "chat -p a -m ", "tokenize -p a -m ",
                                    "render -p a -m ", "bench -m ", "perplexity -p a -m "}) {
    const Outcome outcome = run(command + path("saved/"));
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    const std::string first = outcome.err.substr(0, outcome.err.find('\n'));
    EXPECT_NE(first.find("has 4 checkpoints"), std::string::npos) << first;
    EXPECT_NE(first.find("as in " + path("saved/new.pth")), std::string::npos) << first;
    std::size_t at = first.size();
    for (const char* name : {"lora_identity.pth", "new.pth  v3, 4.35 M", "exported  llama", "_resume.pth", "old.pth"}) {
      at = outcome.err.find(name, at);
      ASSERT_NE(at, std::string::npos) << name << " in " << outcome.err;
    }
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 6) << outcome.err;
    EXPECT_NE(outcome.err.find("LoRA, to be added to a model with --lora"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("log.txt"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run("convert " + path("saved") + " " + path("x.gguf")).status, 2);
  EXPECT_EQ(run("perplexity -p a --against " + path("saved") + demo).status, 2);
}

TEST_F(CheckpointChoice, TheOnlyOneIsLoadedAndNamed) {
  put(demo_model, "full_sft_768.pth", 2021);
  put(*load_golden("v3-lora").lora_path, "lora_identity.pth", 2022);
  put_tokenizer();
  const Outcome outcome = run("generate -p 春 -n 1 --greedy -m " + path("saved"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("saved: assumed its only checkpoint, " + path("saved/full_sft_768.pth")),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(run("tokenize -p 春 -m " + path("saved")).status, 0);
  EXPECT_EQ(run("convert " + path("saved") + " " + path("x.gguf")).status, 0);
}

TEST_F(CheckpointChoice, NoCheckpointIsAnError) {
  fs::create_directories(path("tree/out"));
  const Outcome empty = run("inspect -m " + path("tree/out"));
  EXPECT_EQ(empty.status, 1);
  EXPECT_NE(empty.err.find("without a checkpoint"), std::string::npos) << empty.err;
  fs::create_directories(path("tree/bin"));
  std::ofstream(path("tree/bin/valgrind.bin")) << "\x7f"
                                                  "ELF";
  EXPECT_EQ(run("inspect -m " + path("tree")).err.find("checkpoints are in"), std::string::npos);
  fs::copy(demo_model, path("tree/out/a.pth"));
  EXPECT_NE(run("inspect -m " + path("tree")).err.find("checkpoints are in " + path("tree/out")), std::string::npos);
  put(*load_golden("v3-lora").lora_path, "lora_identity.pth", 2022);
  const Outcome lora = run("inspect -m " + path("saved"));
  EXPECT_EQ(lora.status, 2);
  EXPECT_NE(lora.err.find("has only LoRA files"), std::string::npos) << lora.err;
}

TEST_F(CheckpointChoice, AHuggingFaceFolderIsACheckpoint) {
  put(load_golden("hf-llama").folder, "exported", 2021);
  put(demo_model, "exported/more.pth", 2021);
  EXPECT_EQ(run("inspect -m " + path("saved/exported")).status, 0);
}

TEST_F(CheckpointChoice, ChatOnATerminalAsksForOne) {
  put(demo_model, "old.pth", 2001);
  put(load_golden("v3-dense").model_path, "new.pth", 2021);
  put_tokenizer();
  PseudoTerminal terminal = chat("-m " + path("saved"));
  ASSERT_TRUE(terminal.wait_for("1  ")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("saved/new.pth")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("2  ")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("saved/old.pth")) << terminal.shown();
  terminal.type("3\n");
  ASSERT_TRUE(terminal.wait_for("from 1 to 2")) << terminal.shown();
  terminal.type("2\n");
  ASSERT_TRUE(terminal.wait_for("\x1b[1m> ")) << terminal.shown();
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.status(), 0) << terminal.shown();
}

TEST_F(CheckpointChoice, EnterChoosesTheNewest) {
  put(demo_model, "new.pth", 2021);
  put(load_golden("v3-dense").model_path, "old.pth", 2001);
  put_tokenizer();
  PseudoTerminal terminal = chat("-m " + path("saved"));
  ASSERT_TRUE(terminal.wait_for("Enter: 1)> ")) << terminal.shown();
  terminal.type("\n");
  ASSERT_TRUE(terminal.wait_for("\x1b[1m> ")) << terminal.shown();
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.status(), 0) << terminal.shown();
}

// In a checkout of MiniMind. A script gets the demo, as ever.
TEST_F(CheckpointChoice, ChatWithoutAModelOffersThoseInOut) {
  fs::create_directories(path("saved/out"));
  put(demo_model, "out/mine.pth", 2021);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::copy(std::string(MINIMIND_SOURCE_DIR "/weights/demo/") + name, path("saved/out/") + name);
  }
  const std::string in_checkout = "cd " + path("saved") + " && exec ";
  for (const auto& [typed, shown] :
       {std::pair{"1\n", "out/mine.pth: v3"}, {"\n", "out/mine.pth: v3"}, {"2\n", "demo/model.pth: v3"}}) {
    PseudoTerminal terminal = chat("", in_checkout, "");
    ASSERT_TRUE(terminal.wait_for("out has 1 checkpoint, newest first:")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("1  ")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("out/mine.pth")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("2  the bundled poet")) << terminal.shown();
    ASSERT_TRUE(terminal.wait_for("Enter: 1)> ")) << terminal.shown();
    terminal.type(typed);
    EXPECT_TRUE(terminal.wait_for(shown)) << typed << terminal.shown();
    terminal.signal(SIGKILL);
  }
  const Outcome script = run("chat -p 春 -n 1 --greedy", in_checkout);
  EXPECT_EQ(script.status, 0);
  EXPECT_NE(script.err.find("demo/model.pth"), std::string::npos) << script.err;
}

TEST_F(CheckpointChoice, CtrlCAndCtrlDExit) {
  put(demo_model, "a.pth", 2001);
  put(demo_model, "b.pth", 2021);
  for (const auto& [key, status] : {std::pair{"\x03", 130}, {"\x04", 0}}) {
    PseudoTerminal terminal = chat("-m " + path("saved"));
    ASSERT_TRUE(terminal.wait_for("Enter: 1)> ")) << terminal.shown();
    terminal.type(key);
    EXPECT_EQ(terminal.status(), status) << terminal.shown();
  }
}

}  // namespace
}  // namespace minimind
