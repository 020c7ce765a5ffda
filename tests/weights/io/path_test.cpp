#include "weights/io/path.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

TEST(Path, IsTakenApartAsByTheStandardLibrary) {
  for (const std::string path :
       {"",  "a",  "a/",   "/",   "/a",      "/a/",       "a/b", "a//b",  "a/b//", "/a/b.pth", "./a.b.c",
        ".", "..", "a/..", "a/.", ".hidden", "a/.hidden", "a.",  "a.b/c", "a.b/",  ".a.b",     "模型.pth"}) {
    EXPECT_EQ(parent_path(path), fs::path(path).parent_path().string()) << path;
    EXPECT_EQ(path_extension(path), fs::path(path).extension().string()) << path;
    EXPECT_EQ(join_path(path, "x.y"), (fs::path(path) / "x.y").string()) << path;
  }
}

TEST(Path, SaysWhatIsThereAndWhereALinkLeads) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "a"), link = join_path(folder.path(), "link");
  const std::string dangling = join_path(folder.path(), "dangling");
  fs::create_symlink("file", link);
  fs::create_symlink("gone", dangling);
  EXPECT_TRUE(is_folder(folder.path()) && !is_folder(file) && !is_folder(dangling));
  EXPECT_TRUE(is_there(folder.path()) && is_there(link) && !is_there(dangling) && !is_there(""));
  EXPECT_TRUE(is_regular_file(link) && !is_regular_file(folder.path()) && !is_regular_file(dangling));
  EXPECT_TRUE(is_same_file(file, link) && !is_same_file(file, folder.path()) && !is_same_file(dangling, dangling));
  EXPECT_FALSE(is_same_file(file, dangling) || is_same_file(file, "/dev/null"));
  EXPECT_EQ(real_path(join_path(folder.path(), "./link")), fs::canonical(file).string());
  EXPECT_EQ(real_path(dangling), "");
}

}  // namespace
}  // namespace minimind
