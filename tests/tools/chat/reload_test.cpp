#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/cli.h"
#include "tests/support/pseudo_terminal.h"

namespace minimind {
namespace {

const std::string demo_folder = MINIMIND_SOURCE_DIR "/weights/demo/";

class Reload : public Cli {
 protected:
  Reload() {
    for (const auto& file : std::filesystem::directory_iterator(demo_folder)) {
      if (file.path().extension() != ".md") std::filesystem::copy(file.path(), path(file.path().filename()));
    }
    setenv("XDG_STATE_HOME", path("state").c_str(), 1);
  }

  PseudoTerminal chat() const {
    const std::string command = "exec " + program() + " chat -q --greedy -n 6 " + path("model.pth");
    return PseudoTerminal([&] { return execl("/bin/sh", "sh", "-c", command.c_str(), nullptr); });
  }
};

TEST_F(Reload, ChatSaysThatItsFileWasWrittenAnewAndLoadsIt) {
  PseudoTerminal terminal = chat();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  std::filesystem::copy_file(demo_folder + "model.pth", path("model.pth"),
                             std::filesystem::copy_options::overwrite_existing);
  terminal.type("/stats\r");
  ASSERT_TRUE(terminal.wait_for("model.pth was written anew; /reload loads it")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("/reload\r");
  ASSERT_TRUE(terminal.wait_for("the conversation continues with its weights")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.status(), 0) << terminal.shown();
}

TEST_F(Reload, AFileThatIsNotWholeChangesNothing) {
  PseudoTerminal terminal = chat();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  std::filesystem::resize_file(path("model.pth"), 100'000);
  terminal.type("/reload\r");
  ASSERT_TRUE(terminal.wait_for("is truncated")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  const std::size_t before = terminal.shown().size();
  terminal.type("床前明月光\r");
  ASSERT_TRUE(terminal.wait_for("--max-tokens")) << terminal.shown();
  ASSERT_TRUE(terminal.wait_for("> ")) << terminal.shown();
  EXPECT_GT(terminal.shown().size(), before + 20);
  terminal.type("/exit\r");
  EXPECT_EQ(terminal.status(), 0) << terminal.shown();
}

}  // namespace
}  // namespace minimind
