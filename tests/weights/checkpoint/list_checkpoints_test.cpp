#include "weights/checkpoint/list_checkpoints.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/gguf_bytes.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

TEST(ListCheckpoints, NamesModelsLorasAndWhatIsNeither) {
  const TemporaryFolder folder;
  folder.write("model.pth", pth_bytes(SmallModel{}.tensors()));
  folder.write("lora.pth", pth_bytes({{"a.lora.A.weight", counting_tensor({2, 8})}}));
  folder.write("other.bin", "not a model");
  folder.write("notes.txt", "");
  folder.write("plain/notes.txt", "");
  std::vector<std::string> found;
  for (const ListedCheckpoint& each : list_checkpoints(folder.path())) {
    const std::string kind = each.is_model ? "model" : each.is_lora ? "lora" : "problem: " + each.problem;
    found.push_back(std::filesystem::path(each.path).filename().string() + ": " + kind.substr(0, 8));
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"lora.pth: lora", "model.pth: model", "other.bin: problem:"}));
}

TEST(ListCheckpoints, FoldersHaveFilesThatStartAsCheckpoints) {
  const TemporaryFolder folder;
  folder.write("gguf/a.gguf", GgufBytes().bytes());
  folder.write("pth/a.pth", pth_bytes(SmallModel{}.tensors()));
  folder.write("safetensors/a.safetensors", safetensors_bytes(SmallModel{}.tensors()));
  folder.write("other/a.bin", "\x01\x02");
  folder.write("empty/a.bin", "");
  folder.write("a.gguf", GgufBytes().bytes());
  const std::string path = folder.path();
  EXPECT_EQ(folders_with_checkpoints(path),
            (std::vector<std::string>{path + "/gguf", path + "/pth", path + "/safetensors"}));
}

TEST(ListCheckpoints, OpensNoneAgainThatCouldBeReadAndWasNotWrittenSince) {
  const TemporaryFolder folder;
  for (const char* const name : {"a.pth", "b.pth"}) folder.write(name, pth_bytes(SmallModel{}.tensors()));
  folder.write("cut.pth", "x");
  std::vector<ListedCheckpoint> known = list_checkpoints(folder.path());
  for (ListedCheckpoint& each : known) each.parameters = -1;
  folder.write("b.pth", pth_bytes({{"a.lora.A.weight", counting_tensor({2, 8})}}));
  for (const ListedCheckpoint& each : list_checkpoints(folder.path(), known)) {
    EXPECT_EQ(each.parameters == -1, each.path.ends_with("/a.pth")) << each.path;
    EXPECT_EQ(each.is_lora, each.path.ends_with("/b.pth")) << each.path;
  }
}

TEST(ListCheckpoints, AFileThatIsGoneHasNotBeenWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(written_files(folder.path() + "/gone.pth").empty());
  EXPECT_EQ(written_files(folder.write("a.pth", "x")).size(), 1u);
}

}  // namespace
}  // namespace minimind
