#include <gtest/gtest.h>
#include <signal.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/cli.h"
#include "tests/support/running.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

const std::string demo_folder = MINIMIND_SOURCE_DIR "/weights/demo/";
const std::string options = " -q --seed 7 -n 12 -p 山居";

class Watch : public Cli {
 protected:
  Watch() {
    fs::create_directories(path("saved"));
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"}) {
      fs::copy_file(demo_folder + name, path("saved/") + name);
    }
    std::ofstream(path("valid.jsonl")) << R"({"conversations": [{"role": "user", "content": "山居"}, )"
                                       << R"({"role": "assistant", "content": "空山新雨后，天气晚来秋。"}]})"
                                       << "\n";
    weights_ = read_whole_file(demo_folder + "model.pth");
  }

  // Writes a checkpoint, or its first bytes, as a trainer does.
  void write(const std::string& name, std::size_t bytes = SIZE_MAX) const {
    std::ofstream(path("saved/" + name), std::ios::binary) << weights_.substr(0, bytes);
  }

  std::string folder() const { return " " + path("saved"); }
  std::string shown() const { return read_whole_file(path("out.txt")); }
  std::string notes() const { return read_whole_file(path("err.txt")); }
  Running start(const std::string& more = "") const {
    return Running("watch" + folder() + options + more, path("out.txt"), path("err.txt"));
  }

  std::string weights_;
};

TEST_F(Watch, ShowsTheLossOfPerplexityAndTheAnswerOfChat) {
  write("full_sft_192.pth");
  const Outcome outcome = run("watch --once" + folder() + options + " -f " + path("valid.jsonl"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Outcome score = run("perplexity --json --jsonl -q -f " + path("valid.jsonl") + demo);
  const double loss = nlohmann::json::parse(score.out)["nats_per_token"];
  EXPECT_NE(outcome.out.find(fmt::format("  full_sft_192.pth  loss {:.4f}\n> 山居\n", loss)), std::string::npos)
      << outcome.out;
  std::ofstream(path("question")) << "山居";
  const Outcome chat = run("chat -q --seed 7 -n 12 < " + path("question"));
  ASSERT_FALSE(chat.out.empty()) << chat.err;
  EXPECT_NE(outcome.out.find("\n" + chat.out.substr(0, chat.out.find('\n'))), std::string::npos)
      << outcome.out << chat.out;
}

TEST_F(Watch, APretrainedModelContinuesTheText) {
  write("pretrain_192.pth");
  const Outcome outcome = run("watch --once" + folder() + options);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Outcome text = run("generate" + options + demo);
  EXPECT_NE(outcome.out.find("  pretrain_192.pth\n> 山居\n" + text.out), std::string::npos) << outcome.out << text.out;
}

TEST_F(Watch, WaitsUntilAFileIsWholeAndShowsEachThatIsWrittenAnew) {
  Running running = start(" -f " + path("valid.jsonl"));
  const auto shows_more_than = [&](std::size_t bytes) {
    return running.reach([&] { return shown().size() > bytes && shown().ends_with("\n\n"); });
  };
  write("a.pth", weights_.size() / 2);
  write("b.pth");
  ASSERT_TRUE(shows_more_than(0)) << notes();
  EXPECT_EQ(shown().find("a.pth"), std::string::npos) << shown();
  EXPECT_EQ(notes(), "");
  const std::size_t other = shown().size();
  write("a.pth");
  ASSERT_TRUE(shows_more_than(other)) << notes();
  EXPECT_NE(shown().find("a.pth  loss "), std::string::npos) << shown();
  EXPECT_EQ(shown().find("was"), std::string::npos) << shown();
  const std::size_t first = shown().size();
  write("a.pth.tmp");
  fs::rename(path("saved/a.pth.tmp"), path("saved/a.pth"));
  ASSERT_TRUE(shows_more_than(first)) << notes();
  EXPECT_NE(shown().find(", was ", first), std::string::npos) << shown();
  const auto [status, latency] = running.interrupt(SIGINT);
  EXPECT_EQ(status, 128 + SIGINT);
  EXPECT_EQ(notes(), "minimind: interrupted; 3 checkpoints were shown\n");
}

// Files of one second are in the order in which they were written, and what is no matter of the file is said once.
TEST_F(Watch, ShowsTheOldestFirstAndEachErrorOnce) {
  auto written = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  for (const char* const name : {"b.pth", "a.pth", "c.pth"}) {
    write(name);
    fs::last_write_time(path("saved/") + name, written += std::chrono::milliseconds(1));
  }
  const Outcome outcome = run("watch --once" + folder() + options);
  const std::string& out = outcome.out;
  EXPECT_LT(out.find("b.pth"), out.find("a.pth")) << out;
  EXPECT_LT(out.find("a.pth"), out.find("c.pth")) << out;

  fs::remove(path("saved/a.pth"));
  fs::remove(path("saved/b.pth"));
  write("c.pth");
  Running running = start(" -c 2");
  ASSERT_TRUE(running.reach([&] { return notes().ends_with('\n'); }));
  write("d.pth");  // so that it looks at all once more
  ASSERT_TRUE(running.reach([&] { return std::ranges::count(notes(), '\n') > 1; }));
  EXPECT_EQ(std::ranges::count(notes(), '\n'), 2) << notes();
  EXPECT_EQ(std::ranges::count(shown(), '>'), 2) << shown();
  EXPECT_NE(notes().find("c.pth"), std::string::npos) << notes();
  EXPECT_NE(notes().find("d.pth"), std::string::npos) << notes();
  running.interrupt(SIGTERM);
}

TEST_F(Watch, SaysWhyAFileIsNotShownAndGoesOn) {
  write("broken.pth", weights_.size() / 2);
  write("good.pth");
  const Outcome outcome = run("watch --once" + folder() + options);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("broken.pth"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("good.pth\n> 山居\n"), std::string::npos) << outcome.out;
  fs::remove(path("saved/good.pth"));
  EXPECT_EQ(run("watch --once" + folder() + options).status, 1);
}

TEST_F(Watch, SaysWhatIsWrongWithTheFolder) {
  EXPECT_EQ(run("watch").status, 2);
  EXPECT_EQ(run("watch " + path("no")).status, 1);
  EXPECT_EQ(run("watch " + path("valid.jsonl")).status, 1);
  EXPECT_NE(run("watch " + path("no")).err.find("does not exist, expected the folder"), std::string::npos);
}

}  // namespace
}  // namespace minimind
