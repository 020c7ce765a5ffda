#include "tools/serve/sandbox.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

class WeightsFoldersTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  const std::string inside = folder.write("allowed/model.pth", "a"), outside = folder.write("secret/model.pth", "b"),
                    allowed = folder.path() + "/allowed";
  const WeightsFolders folders{{allowed}};
};

TEST_F(WeightsFoldersTest, AllowFilesBelowThem) {
  const std::string real = fs::canonical(inside).string();
  EXPECT_EQ(folders.resolve(inside), real);
  EXPECT_EQ(folders.resolve(allowed), fs::canonical(allowed).string());
  EXPECT_EQ(folders.resolve(allowed + "/../allowed/./model.pth"), real);
  fs::create_directory_symlink(allowed, folder.path() + "/link");
  EXPECT_EQ(folders.resolve(folder.path() + "/link/model.pth"), real) << "the link leads inside";
  EXPECT_EQ(WeightsFolders({folder.path() + "/link"}).resolve(inside), real);
}

TEST_F(WeightsFoldersTest, RejectEverythingElseAlike) {
  fs::create_symlink(outside, allowed + "/link.pth");
  fs::create_symlink(folder.path() + "/secret/none", allowed + "/dangling.pth");
  fs::create_directory_symlink(folder.path() + "/secret", allowed + "/linked");
  folder.write("allowed2/model.pth", "c");
  for (const std::string& path :
       {outside, std::string("/etc/passwd"), std::string("/nowhere"), allowed + "/link.pth", allowed + "/dangling.pth",
        allowed + "/linked/model.pth", allowed + "/none.pth", allowed + "/../secret/model.pth", folder.path(),
        folder.path() + "/allowed2/model.pth", inside + std::string(1, '\0') + "x", std::string()}) {
    EXPECT_EQ(folders.resolve(path), std::nullopt) << path;
  }
  EXPECT_EQ(WeightsFolders({}).resolve(inside), std::nullopt);
}

TEST_F(WeightsFoldersTest, DoNotTellWhetherAFolderElsewhereExists) {
  for (const char* const name : {"/secret", "/none"}) {
    EXPECT_NE(folders.resolve(folder.path() + name + "/../allowed/model.pth"), std::nullopt) << name;
  }
}

TEST_F(WeightsFoldersTest, RejectACheckpointWhoseFilesLeadOutside) {
  folder.write("allowed/hf/config.json", "{}");
  EXPECT_NE(folders.resolve(allowed + "/hf"), std::nullopt);
  fs::create_symlink(outside, allowed + "/hf/pytorch_model.bin");
  EXPECT_EQ(folders.resolve(allowed + "/hf"), std::nullopt);
  folder.write("allowed/exported/model.safetensors", "a");
  fs::create_symlink(outside, allowed + "/exported/config.json");
  EXPECT_EQ(folders.resolve(allowed + "/exported/model.safetensors"), std::nullopt);
}

}  // namespace
}  // namespace minimind
