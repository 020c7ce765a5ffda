#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/support/golden.h"
#include "weights/base/cancel.h"
#include "weights/base/parallel.h"
#include "weights/io/input_file.h"

namespace minimind {
namespace {

TEST(CancelledReading, EndsAtTheNextBytesOfAFile) {
  const auto file = InputFile::open(MINIMIND_SOURCE_DIR "/weights/demo/model.pth");
  const std::atomic<bool> flag{true};
  const Cancellation cancellation(flag);
  std::array<std::byte, 16> bytes;
  EXPECT_THROW(file->read(0, bytes), Cancelled);
}

TEST(CancelledReading, EndsThatOfTheThreadsThatShareTheWork) {
  std::atomic<bool> flag{false};
  const Cancellation cancellation(flag);
  const auto caller = std::this_thread::get_id();
  EXPECT_THROW(in_parallel(2, 2,
                           [&](std::size_t) {
                             flag = flag || std::this_thread::get_id() == caller;
                             while (true) check_cancelled();
                           }),
               Cancelled);
}

}  // namespace
}  // namespace minimind
