#include "weights/io/file_lock.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// Another process, which has the lock until it is ended.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      const FileLock lock(path);
      const bool said = ::write(ready[1], "x", 1) == 1;
      while (said) ::pause();
    }
    ::close(ready[1]);
    char byte;
    held_ = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { end(); }

  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  bool held() const { return held_; }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
  bool held_ = false;
};

TEST(FileLock, IsRejectedNamingTheHolderUntilThatEnds) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a session";
  Holder holder(path);
  ASSERT_TRUE(holder.held());
  const std::string message = error_of([&] { FileLock lock(path); });
  EXPECT_TRUE(message.starts_with(path + ": is in use by process " + std::to_string(holder.process()) + " ("))
      << message;
  EXPECT_NE(message.find("tests"), std::string::npos) << message;
  EXPECT_NE(message.find("; wait until that ends"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(error_of([&] { FileLock lock(path + "2"); }), "");
  holder.end();
  EXPECT_TRUE(fs::exists(folder.path() + "/.a session.lock")) << "what a killed process leaves";
  EXPECT_EQ(error_of([&] { FileLock lock(path); }), "");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FileLock, StaysWhenTheFileIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder.write("s", "before");
  const Holder holder(path);
  fs::rename(folder.write("new", "after"), path);
  EXPECT_NE(error_of([&] { FileLock lock(path); }).find("is in use"), std::string::npos);
}

TEST(FileLock, IsOfTheFileAndNotOfTheName) {
  const TemporaryFolder folder;
  const std::string path = folder.write("s", "");
  const std::string link = folder.path() + "/link";
  fs::create_symlink(path, link);
  const Holder holder(link);
  EXPECT_NE(error_of([&] { FileLock lock(path); }).find("is in use"), std::string::npos);
}

TEST(FileLock, NamesAProcessOfAnotherMachineWithIt) {
  const TemporaryFolder folder;
  const Holder holder(folder.path() + "/s");
  folder.write(".s.lock", "1 elsewhere\n");
  EXPECT_NE(error_of([&] { FileLock lock(folder.path() + "/s"); }).find("process 1 on 'elsewhere'; "),
            std::string::npos);
  folder.write(".s.lock", "");
  EXPECT_NE(error_of([&] { FileLock lock(folder.path() + "/s"); }).find("by another process; "), std::string::npos);
}

TEST(FileLock, PassesBetweenManyWaitingThreads) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s", count = folder.write("count", "");
  constexpr int processes = 4, times = 50;
  for (int i = 0; i < processes; ++i) {
    if (::fork() != 0) continue;
    for (int done = 0; done < times;) {
      try {
        const FileLock lock(path);
        folder.write("count", read_whole_file(count) + "x");
        ++done;
      } catch (const std::exception&) {
        continue;
      }
    }
    ::_exit(0);
  }
  for (int i = 0; i < processes; ++i) ::wait(nullptr);
  EXPECT_EQ(read_whole_file(count).size(), std::size_t{processes * times});
  EXPECT_FALSE(fs::exists(folder.path() + "/.s.lock"));
}

TEST(FileLock, ReportsWhyLockingIsImpossible) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/no/such/s";
  EXPECT_EQ(error_of([&] { FileLock lock(path); }),
            path + ": cannot be locked: " + folder.path() +
                "/no/such/.s.lock: No such file or directory; choose a folder that you may write to");
}

TEST(FileLock, IsHeldIfThereIsNoSpaceForTheNameOfItsHolder) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const Holder holder(path);
  const std::string alone = error_of([&] { FileLock lock(path + "2"); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(alone, "");
  ASSERT_TRUE(holder.held());
  EXPECT_EQ(error_of([&] { FileLock lock(path); }),
            path + ": is in use by another process; wait until that ends, or name another file");
}

}  // namespace
}  // namespace minimind
