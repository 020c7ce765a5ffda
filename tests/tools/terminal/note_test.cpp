#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/pseudo_terminal.h"
#include "tools/terminal/note.h"

namespace minimind {
namespace {

// What a child process reads from the pipe that is its standard error, after write() and after a note.
struct Read {
  std::string first, last;
};

// The mode is of the process and cannot be taken back.
template <class Write, class Check>
int in_child(Write write, Check check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int ends[2];
    if (pipe(ends) != 0) end_child(2);
    dup2(ends[1], STDERR_FILENO);
    never_wait_for_standard_error();
    write();
    Read result{std::string(1 << 20, '\0'), std::string(4096, '\0')};
    result.first.resize(static_cast<std::size_t>(read(ends[0], result.first.data(), result.first.size())));
    note("last {}", 1);
    result.last.resize(static_cast<std::size_t>(read(ends[0], result.last.data(), result.last.size())));
    end_child(check(result) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(StandardError, APipeThatNobodyReadsLosesLines) {
  const std::string line(1000, 'a');
  const auto write = [&] {
    for (int i = 0; i < 1000; ++i) write_error_line(line + '\n');  // a pipe has 64 KB
  };
  EXPECT_EQ(in_child(write,
                     [&](const Read& read) {
                       return read.first.starts_with(line + "\n" + line + "\n") && read.first.size() % 1001 == 0 &&
                              read.last == std::to_string(1000 - read.first.size() / 1001) +
                                               " lines of this log are lost\nminimind: last 1\n";
                     }),
            0);
}

TEST(StandardError, AFullPipeStopsNoneOfManyThreads) {
  if (is_emulated()) GTEST_SKIP() << "the emulator crashes if a forked child starts threads";
  const auto write = [] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] {
        for (int j = 0; j < 1000; ++j) note("{}", std::string(3000, 'a'));
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  EXPECT_EQ(in_child(write, [](const Read& read) { return read.last.ends_with(" are lost\nminimind: last 1\n"); }), 0);
}

TEST(StandardError, ALineOverAPagesLengthIsShortened) {
  EXPECT_EQ(in_child([] { note("{}", std::string(1 << 20, 'a')); },
                     [](const Read& read) {
                       return read.first.size() == 4096 && read.first.starts_with("minimind: aaa") &&
                              read.first.ends_with("a...\n") && read.last == "minimind: last 1\n";
                     }),
            0);
}

}  // namespace
}  // namespace minimind
