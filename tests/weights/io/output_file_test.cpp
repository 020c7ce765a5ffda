#include "weights/io/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

// Files of this process cannot grow over a limit during its lifetime; writing then fails as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(OutputFile, AppearsUnderItsNameOnlyWhenCommitted) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/model.gguf";
  OutputFile file(path);
  file.write(as_bytes("whole"));
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(files_in(folder), 1u);
  const std::string temporary = fs::directory_iterator(folder.path())->path().filename().string();
  EXPECT_TRUE(temporary.starts_with(".model.gguf.")) << temporary;
  EXPECT_TRUE(temporary.ends_with(".part")) << temporary;
  file.commit();
  EXPECT_EQ(read_whole_file(path), "whole");
  EXPECT_EQ(files_in(folder), 1u);
}

// Runs in another process, which then kills itself. Returns its number.
template <class Work>
pid_t killed_after(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(OutputFile, RemovesWhatKilledProcessesLeft) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  for (int i = 0; i < 3; ++i) {
    killed_after([&] {
      OutputFile file(path);
      file.write(as_bytes("half"));
      ::kill(::getpid(), SIGKILL);
    });
  }
  EXPECT_EQ(files_in(folder), 1u) << "each removes what the one before left";
  OutputFile file(path);
  file.commit();
  EXPECT_EQ(files_in(folder), 1u);
  EXPECT_TRUE(fs::exists(path));
}

TEST(OutputFile, RemovesNothingElse) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(killed_after([] {})), alive = std::to_string(::getppid());
  for (const std::string& name :
       std::vector<std::string>{".out." + alive + "-99999.part", ".out." + dead + "-.part", ".out." + dead + ".part",
                                ".out.-" + dead + "-0.part", ".out." + dead + "-0.part2", ".out." + dead + "-0x.part",
                                "out." + dead + "-0.part", ".out2." + dead + "-0.part", ".out.1." + dead + "-0.part",
                                ".out.0-0.part", ".out.-1-0.part", ".out.99999999999999999999-0.part"}) {
    folder.write(name, "another's");
  }
  fs::create_directory(folder.path() + "/.out." + dead + "-1.part");
  fs::create_symlink(folder.path() + "/.out." + dead + "-.part", folder.path() + "/.out." + dead + "-2.part");
  ASSERT_EQ(::mkfifo((folder.path() + "/.out." + dead + "-3.part").c_str(), 0666), 0);
  const std::size_t before = files_in(folder);
  OutputFile{folder.path() + "/out"}.commit();
  EXPECT_EQ(files_in(folder), before + 1);
  folder.write(".out." + dead + "-4.part", "stale");
  OutputFile{folder.path() + "/out"}.commit();
  EXPECT_EQ(files_in(folder), before + 1);
}

TEST(OutputFile, RemovesWhatAProcessOfTheSameNumberLeft) {
  for (const int days : {0, 365}) {
    const TemporaryFolder folder;
    const std::string path = folder.write(".out." + std::to_string(::getpid()) + "-99999.part", "old");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(24 * days));
    OutputFile{folder.path() + "/out"}.commit();
    EXPECT_EQ(files_in(folder), 1u);
  }
}

// As a process of another machine does, whose number says nothing here.
TEST(OutputFile, LeavesWhatIsBeingWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  OutputFile file(path);
  file.write(as_bytes("whole"));
  const std::string mine = fs::directory_iterator(folder.path())->path().string();
  const std::string dead = folder.path() + "/.out." + std::to_string(killed_after([] {})) + "-0.part";
  fs::rename(mine, dead);
  { const OutputFile other(path); }
  EXPECT_TRUE(fs::exists(dead));
  fs::rename(dead, mine);
  file.finish();
  fs::rename(mine, dead);
  { const OutputFile other(path); }
  EXPECT_TRUE(fs::exists(dead)) << "until it has its name";
  fs::rename(dead, mine);
  file.commit();
  EXPECT_EQ(read_whole_file(path), "whole");
}

TEST(OutputFile, LeavesNothingAndTouchesNothingWithoutCommit) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", "before");
  {
    OutputFile file(path);
    file.write(as_bytes("after"));
  }
  EXPECT_EQ(read_whole_file(path), "before");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(OutputFile, WritesPiecesOfAnySizeInOrder) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  std::string all;
  OutputFile file(path);
  for (const std::size_t size : {1u, 0u, 1000u, 3u << 20, 5u, 1u << 20, (1u << 20) - 5, 7u}) {
    const std::string part(size, static_cast<char>('a' + all.size() % 26));
    all += part;
    file.write(as_bytes(part));
    EXPECT_EQ(file.size(), all.size());
  }
  file.commit();
  EXPECT_TRUE(read_whole_file(path) == all);
}

TEST(OutputFile, RewritesWhatIsInTheFileAndWhatIsStillBuffered) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  OutputFile file(path);
  file.write(as_bytes(std::string(2 << 20, 'x')));
  file.write(as_bytes("tail"));
  file.rewrite(1, as_bytes("HEAD"));
  file.rewrite((2 << 20) - 1, as_bytes("yTAI"));
  file.write(as_bytes("!"));
  EXPECT_NE(error_of([&] { file.rewrite(file.size(), as_bytes("beyond")); }), "");
  file.commit();
  const std::string content = read_whole_file(path);
  EXPECT_EQ(content.substr(0, 6), "xHEADx");
  EXPECT_EQ(content.substr((2 << 20) - 2), "xyTAIl!");
}

TEST(OutputFile, HasThePermissionsOfAnyNewFile) {
  const TemporaryFolder folder;
  for (const mode_t mask : {0022u, 0077u, 0002u}) {
    const mode_t before = ::umask(mask);
    OutputFile file(folder.path() + "/out");
    ::umask(before);
    file.commit();
    struct stat status {};
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0666u & ~mask);
  }
}

TEST(OutputFile, OfItsOwnerAloneHasNoOtherReaderAtAnyTime) {
  const TemporaryFolder folder;
  const auto mode_of = [](const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777u : 0u;
  };
  for (const mode_t mask : {0000u, 0022u, 0277u}) {
    const std::string path = folder.write("out", "before");  // that others may read
    const mode_t before = ::umask(mask);
    OutputFile file(path, {}, OutputFile::Readers::owner);
    ::umask(before);
    std::string part;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().extension() == ".part") part = entry.path().string();
    }
    EXPECT_EQ(mode_of(part), 0600u) << part;
    file.commit();
    EXPECT_EQ(mode_of(path), 0600u);
  }
}

TEST(OutputFile, ReplacesTheFileThatALinkLeadsTo) {
  const TemporaryFolder folder;
  const std::string target = folder.write("elsewhere/target", "before");
  const std::string link = folder.path() + "/link";
  fs::create_symlink(target, link);
  OutputFile file(link);
  file.write(as_bytes("after"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_whole_file(target), "after");
}

TEST(OutputFile, WritesNamesOfTheGreatestLength) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/" + std::string(255, 'n');
  OutputFile file(path);
  file.commit();
  EXPECT_TRUE(fs::exists(path));
}

TEST(OutputFile, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/no/such/out";
  EXPECT_EQ(error_of([&] { OutputFile file(missing); }), missing + ": cannot be written: No such file or directory");
  EXPECT_NE(error_of([&] { OutputFile file(folder.path()); }).find("is a folder"), std::string::npos);
  EXPECT_NE(error_of([&] { OutputFile file("/dev/null"); }).find("not a regular file"), std::string::npos);
  EXPECT_NE(error_of([&] { OutputFile file(""); }), "");
}

TEST(OutputFile, SaysWhenTheDiskTakesNoMore) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  {
    OutputFile file(path);
    const FileSizeLimit limit(1 << 20);
    EXPECT_EQ(error_of([&] { file.write(as_bytes(std::string(3 << 20, 'x'))); }),
              path + ": cannot be written: File too large");
  }
  EXPECT_EQ(files_in(folder), 0u);
  {
    OutputFile file(path);
    file.write(as_bytes("buffered"));
    const FileSizeLimit limit(4);
    EXPECT_EQ(error_of([&] { file.commit(); }), path + ": cannot be written: File too large");
  }
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(OutputFile, ReportsProgressAboutEveryMegabyte) {
  const TemporaryFolder folder;
  std::vector<std::uint64_t> seen;
  OutputFile file(folder.path() + "/out", [&](std::uint64_t written) { seen.push_back(written); });
  for (int i = 0; i < 1000; ++i) file.write(as_bytes(std::string(3000, 'x')));
  file.commit();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1 << 20, 2 << 20, 3000000}));
}

TEST(OutputFile, EndsWhenItsWatchThrows) {
  const TemporaryFolder folder;
  {
    OutputFile file(folder.path() + "/out", [](std::uint64_t) { throw std::runtime_error("interrupted"); });
    EXPECT_THROW(file.write(as_bytes(std::string(8 << 20, 'x'))), std::runtime_error);
  }
  EXPECT_EQ(files_in(folder), 0u);
}

}  // namespace
}  // namespace minimind
