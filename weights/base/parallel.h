#pragma once

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "weights/base/cancel.h"

namespace minimind {

// A block on signals: during its lifetime, the creating thread receives none. Threads started meanwhile never receive
// any, so that a signal for the program always reaches the thread that waits for it.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // The previous signal mask.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

// Jobs 0 to `count` - 1, which several threads take one by one. The first exception of any cancels the others.
class SharedJobs {
 public:
  explicit SharedJobs(std::size_t count) : count_(count) {}

  // Calls work(i) for each job that this thread takes, until none is left. Every thread calls it.
  template <class Work>
  void run(const Work& work) {
    const Cancellation with_others(failed_);
    try {
      for (std::size_t i = next_++; i < count_ && !failed_; i = next_++) work(i);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }

  // Rethrows the first exception, after all threads have ended.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const std::size_t count_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_;
};

// Calls work(i) for i in [0, count) on up to `threads` threads, in any order; rethrows the first exception of any of
// them, which cancels the work of the others.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, const Work& work) {
  SharedJobs jobs(count);
  const auto run = [&] { jobs.run(work); };
  {
    std::vector<std::jthread> others;
    try {
      const HeldSignals held;
      while (others.size() + 1 < std::min(count, threads)) others.emplace_back(run);
    } catch (const std::system_error&) {  // the system gives no more: those that there are do the work
    }
    run();
  }
  jobs.rethrow_failure();
}

}  // namespace minimind
