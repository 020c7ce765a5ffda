#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "weights/base/held_signals.h"

namespace minimind {

// Calls work(i) for i in [0, count) on up to `threads` threads, in any order; rethrows an exception of any of them.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
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
