#include "weights/io/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::string fifo_in(const TemporaryFolder& folder) {
  const std::string path = folder.path() + "/fifo";
  if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("no FIFO: " + path);
  return path;
}

// A pipe, and its name as a shell's <(...) gives it.
class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() { ::close(ends_[0]); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[0]); }
  void write(const std::string& text) const {
    if (::write(ends_[1], text.data(), text.size()) != std::ssize(text)) throw std::runtime_error("not written");
  }
  void close() const { ::close(ends_[1]); }

 private:
  int ends_[2];
};

TEST(TextFile, IsReadAsAWhole) {
  const TemporaryFile file("some text\n");
  EXPECT_EQ(read_text_file(file.path()), "some text\n");
  EXPECT_EQ(read_text_or_pipe(file.path()), "some text\n");
  EXPECT_EQ(read_text_file(TemporaryFile().path()), "");
  EXPECT_EQ(error_of([&] { read_text_file(file.path(), 9); }), file.path() + ": is too long, expected at most 9 bytes");
}

TEST(TextFile, NamesWhatCannotBeRead) {
  EXPECT_EQ(error_of([] { read_text_file("/nonexistent"); }),
            "/nonexistent: cannot be read: No such file or directory");
  EXPECT_EQ(error_of([] { read_text_file("/tmp"); }), "/tmp: cannot be read: Is a directory");
  EXPECT_EQ(error_of([] { read_text_or_pipe("/tmp"); }), "/tmp: cannot be read: Is a directory");
  EXPECT_EQ(error_of([] { read_text_file("/proc/self/mem"); }), "/proc/self/mem: cannot be read: Input/output error");
  EXPECT_EQ(error_of([] { read_text_file("/dev/zero"); }), "/dev/zero: is not a regular file");
  EXPECT_EQ(error_of([] { read_text_or_pipe("/dev/zero", 100); }),
            "/dev/zero: is too long, expected at most 100 bytes");
}

TEST(TextFile, AFifoIsRejectedWithoutWaiting) {
  const TemporaryFolder folder;
  const std::string fifo = fifo_in(folder);
  EXPECT_EQ(error_of([&] { read_text_file(fifo); }), fifo + ": is not a regular file");
  EXPECT_EQ(error_of([&] { read_text_or_pipe(fifo); }),
            fifo + ": is a pipe that no process writes to; start the writer first");
}

TEST(TextFile, APipeThatWasClosedIsReadToItsEnd) {
  const Pipe empty, full;
  empty.close();
  EXPECT_EQ(read_text_or_pipe(empty.path()), "");
  full.write("from a shell");
  full.close();
  EXPECT_EQ(read_text_or_pipe(full.path()), "from a shell");
}

TEST(TextFile, WaitsForTheWriterOfAPipe) {
  const Pipe pipe;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) pipe.write(std::string(100, 'x'));
    pipe.close();
  });
  EXPECT_EQ(read_text_or_pipe(pipe.path()), std::string(100'000, 'x'));
  writer.join();
}

TEST(TextFile, WaitsForNoWriterOnceTheWorkIsCancelled) {
  const Pipe pipe;
  std::atomic<bool> cancelled{true};
  const Cancellation cancellation(cancelled);
  EXPECT_THROW(read_text_or_pipe(pipe.path()), Cancelled);
  cancelled = false;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
  });
  EXPECT_THROW(read_text_or_pipe(pipe.path()), Cancelled);
  EXPECT_THROW(read_pieces_or_pipe("/dev/zero", [](std::string_view) {}), Cancelled) << "nor reads on";
  canceller.join();
  pipe.close();
}

}  // namespace
}  // namespace minimind
