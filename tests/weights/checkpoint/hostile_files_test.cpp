#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/cpu_seconds.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/checkpoint/weights_hash.h"

// Files of all formats that would take a reader for ever, or that change while they are read.
namespace minimind {
namespace {

namespace fs = std::filesystem;

// A file of each format: its name and its content.
std::vector<std::pair<std::string, std::string>> files() {
  const std::string golden = MINIMIND_SOURCE_DIR "/tests/";
  return {{"model.pth", read_whole_file(golden + "golden/v3-dense/model.pth")},
          {"legacy.pth", read_whole_file(golden + "golden/v3-legacy-pth/model.pth")},
          {"model.safetensors", read_whole_file(golden + "golden/hf-llama/model.safetensors")},
          {"types.gguf", read_whole_file(golden + "golden_gguf/types.gguf")}};
}

// Reads the file, which must be an error that names it, within a second.
void expect_error_at_once(const std::string& path) {
  const double start = cpu_seconds();
  EXPECT_TRUE(error_of([&] { open_checkpoint(path, {}); }).starts_with(path + ": ")) << path;
  EXPECT_LT(cpu_seconds() - start, 1) << path;
}

bool make_sparse(const std::string& path) {
  return ::truncate(path.c_str(), off_t{1} << 40) == 0 || ::truncate(path.c_str(), off_t{1} << 38) == 0;
}

TEST(HostileFiles, ATerabyteOfZerosIsAnErrorAtOnce) {
  const TemporaryFolder folder;
  for (const auto& [name, content] : files()) {
    const std::string whole = folder.write(name, content), zeros = folder.write("zeros-" + name, "");
    if (!make_sparse(whole) || !make_sparse(zeros)) GTEST_SKIP() << "the file system has no files of this size";
    expect_error_at_once(whole);
    expect_error_at_once(zeros);
  }
}

TEST(HostileFiles, AFifoIsAnErrorAtOnce) {
  const TemporaryFolder folder;
  for (const auto& [name, content] : files()) {
    const std::string path = folder.path() + "/" + name;
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(error_of([&] { open_checkpoint(path, {}); }), path + ": is not a regular file");
  }
}

TEST(HostileFiles, AFifoInAFolderIsAnErrorAtOnce) {
  const std::string golden = MINIMIND_SOURCE_DIR "/tests/golden/hf-qwen3-sharded";
  for (const auto& entry : fs::directory_iterator(golden)) {
    const std::string name = entry.path().filename().string();
    if (name == "case.json" || name == "logits.npy") continue;
    const TemporaryFolder folder;
    fs::copy(golden, folder.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const std::string path = folder.path() + "/" + name;
    fs::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(error_of([&] { open_checkpoint(folder.path(), {}); }), path + ": is not a regular file");
  }
}

TEST(HostileFiles, AFileThatIsTruncatedWhenItIsOpenIsAnErrorThatNamesIt) {
  const std::string golden = MINIMIND_SOURCE_DIR "/tests/golden/";
  for (const char* name : {"v3-dense/model.pth", "v3-legacy-pth/model.pth"}) {
    const TemporaryFolder folder;
    const std::string content = read_whole_file(golden + name);
    for (const std::size_t left : {content.size() - 1, content.size() / 2, std::size_t{1}, std::size_t{0}}) {
      const std::string path = folder.write("model.pth", content);
      const Checkpoint checkpoint = open_checkpoint(path, {});
      ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0);
      EXPECT_EQ(error_of([&] { weights_sha256(checkpoint.tensors); }),
                path + ": was changed while it was read; read it again when it is complete");
    }
  }
}

// Another thread writes the file again and again: in place, so that it is short for a moment.
TEST(HostileFiles, AFileThatIsRewrittenIsReadAsItWasOrIsAnError) {
  const TemporaryFolder folder;
  const std::string content = read_whole_file(MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth");
  const std::string path = folder.write("model.pth", content);
  const std::string hash = weights_sha256(open_checkpoint(path, {}).tensors);
  std::atomic<bool> done{false};
  std::thread trainer([&] {
    while (!done) folder.write("model.pth", content);
  });
  for (int i = 0; i < 300; ++i) {
    const std::string error = error_of([&] { EXPECT_EQ(weights_sha256(open_checkpoint(path, {}).tensors), hash); });
    EXPECT_TRUE(error.empty() || error.starts_with(path + ": ")) << error;
  }
  done = true;
  trainer.join();
}

}  // namespace
}  // namespace minimind
