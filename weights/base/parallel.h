#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "weights/base/cancel.h"
#include "weights/base/held_signals.h"

namespace minimind {

// Calls work(i) for i in [0, count) on up to `threads` threads, in any order; rethrows the first exception of any of
// them, which cancels the work of the others.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  const auto run = [&] {
    const Cancellation with_others(failed);
    try {
      for (std::size_t i = next++; i < count && !failed; i = next++) work(i);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      const HeldSignals held;
      while (others.size() + 1 < std::min(count, threads)) others.emplace_back(run);
    } catch (const std::system_error&) {  // the system gives no more: those that there are do the work
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace minimind
