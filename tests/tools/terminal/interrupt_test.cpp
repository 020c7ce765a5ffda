#include "tools/terminal/interrupt.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/end_child.h"
#include "tests/support/temporary_folder.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/io/output_file.h"

namespace minimind {
namespace {

// Returns the status of a child process; -1 if it had to be killed because it waits for ever.
int status_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) end_child(body());
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > last) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Makes the descriptor a pipe that is full and that nobody reads.
void fill(int descriptor) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) end_child(2);
  const std::string bytes(4096, 'a');
  while (write(ends[1], bytes.data(), bytes.size()) > 0) continue;
  fcntl(ends[1], F_SETFL, 0);
  dup2(ends[1], descriptor);
}

// Returns 0 if reading from a pipe that nobody writes to is interrupted.
int read_for_ever() {
  int ends[2];
  char byte;
  return pipe(ends) == 0 && read(ends[0], &byte, 1) < 0 && errno == EINTR ? 0 : 1;
}

TEST(Signals, OneThatComesJustBeforeASystemCallWaitsInterruptsIt) {
  EXPECT_EQ(status_of_child([] {
              end_at_signals();
              const WatchedInterrupts interrupts;
              raise(SIGTERM);
              return read_for_ever() + (interrupts.flag() ? interrupted_status() : 0);
            }),
            143);
  EXPECT_EQ(status_of_child([] {
              const TerminalSignals& signals = watch_terminal_signals();
              raise(SIGTERM);
              return read_for_ever() + signals.ended;
            }),
            SIGTERM);
}

TEST(Signals, OutputThatNobodyReadsDoesNotHoldTheProgram) {
  EXPECT_EQ(status_of_child([] {
              end_at_signals();
              const WatchedInterrupts interrupts;
              fill(STDOUT_FILENO);
              fill(STDERR_FILENO);
              raise(SIGINT);
              note("interrupted");
              try {
                write_output("text");
              } catch (const OutputFailure&) {
                return interrupted_status();
              }
              return 1;
            }),
            130);
}

TEST(Signals, ErrorsThatNobodyReadsDoNotHoldTheProgram) {
  EXPECT_EQ(status_of_child([] {
              end_at_signals();
              fill(STDERR_FILENO);
              raise(SIGTERM);
              return 1;
            }),
            143);
}

// Returns the status of a program that a signal ends while it writes a file of so many bytes.
int status_after_writing(const std::string& path, std::size_t bytes) {
  return status_of_child([&] {
    end_at_signals();
    OutputFile file(path);
    file.write(std::vector<std::byte>(bytes));
    raise(SIGTERM);
    return 1;
  });
}

// A child that outlives the program becomes one of this process.
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
TEST(Signals, ALargeUnfinishedFileIsFreedAfterTheEndOfTheProgram) {
  if (is_emulated()) GTEST_SKIP() << "the emulator knows no subreapers";
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const TemporaryFolder folder;
  int status = 0;
  EXPECT_EQ(status_after_writing(folder.path() + "/small", 1 << 20), 143);
  EXPECT_EQ(waitpid(-1, &status, 0), -1) << "a small file is freed at once";

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(status_after_writing(folder.path() + "/large", 16 << 20), 143);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "its pipes must be closed";
  close(ends[0]);
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_EQ(status, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}
#endif

}  // namespace
}  // namespace minimind
