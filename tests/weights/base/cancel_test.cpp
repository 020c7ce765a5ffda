#include "weights/base/cancel.h"

#include <gtest/gtest.h>

namespace minimind {
namespace {

TEST(Cancellation, AnyFlagAroundTheWorkCancelsIt) {
  std::atomic<bool> outer_flag = false, inner_flag = false;
  const Cancellation outer(outer_flag);
  {
    const Cancellation inner(inner_flag);
    EXPECT_NO_THROW(check_cancelled());
    outer_flag = true;
    EXPECT_THROW(check_cancelled(), Cancelled);
    outer_flag = false;
    inner_flag = true;
    EXPECT_THROW(check_cancelled(), Cancelled);
  }
  EXPECT_NO_THROW(check_cancelled()) << "the inner one has ended";
}

}  // namespace
}  // namespace minimind
