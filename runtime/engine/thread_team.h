#pragma once

#include <omp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/engine/matrix.h"
#include "runtime/engine/profile.h"
#include "weights/io/held_signals.h"

namespace minimind {

// The `index`-th of `count` nearly equal parts of [0, n), in order.
constexpr Range share_of(std::size_t n, std::size_t index, std::size_t count) {
  const std::size_t size = n / count, larger = n % count;
  const std::size_t begin = index * size + (index < larger ? index : larger);
  return {begin, begin + size + (index < larger ? 1 : 0)};
}

// Lets threads wait for each other many times a token: spins for a while, which is much the fastest while every thread
// has a core of its own, then sleeps. Sleeping, unlike yielding, hands a core that another program wants back to us as
// soon as there is work.
class Barrier {
 public:
  explicit Barrier(std::size_t count);
  void wait() noexcept;

 private:
  const std::size_t count_;
  const int spins_;  // none when there are more threads than cores: then those that wait are in the others' way
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
};

// One thread of a running team.
class Worker {
 public:
  // `profile` may be null.
  Worker(std::size_t index, std::size_t count, Barrier& barrier, ThreadProfile* profile)
      : index_(index), count_(count), barrier_(barrier), profile_(profile) {
    if (profile_) profile_->start();
  }

  std::size_t index() const { return index_; }
  std::size_t count() const { return count_; }
  Range share(std::size_t n) const { return share_of(n, index_, count_); }

  // Returns when every worker of the team has called it; what they wrote before is then visible to all.
  void barrier() noexcept {
    if (!profile_) return barrier_.wait();
    const Operation interrupted = profile_->enter(Operation::barrier_wait);
    barrier_.wait();
    profile_->enter(interrupted);
  }

  // From here on this thread's time counts for `operation`, if anybody wants to know.
  void begin(Operation operation) const noexcept {
    if (profile_) profile_->enter(operation);
  }

 private:
  std::size_t index_;
  std::size_t count_;
  Barrier& barrier_;
  ThreadProfile* profile_;
};

// Runs body(Worker&) on `threads` threads at once, in one OpenMP parallel region; `body` must not throw. The system may
// give fewer threads than asked for: workers must go by their count(). `profiles` holds one for each thread, or none.
// Signals come to the calling thread only.
template <class Body>
void run_team(std::size_t threads, Body&& body, std::span<ThreadProfile> profiles = {}) {
  if (threads <= 1) {
    Barrier barrier(1);
    Worker alone(0, 1, barrier, profiles.empty() ? nullptr : profiles.data());
    body(alone);
    alone.barrier();
    return;
  }
  std::optional<Barrier> barrier;
  std::optional<HeldSignals> held(std::in_place);  // until the other threads are started
  // The last wait lets libgomp's own barrier, which only spins, find everyone there.
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
#pragma omp master
    held.reset();
#pragma omp single
    barrier.emplace(static_cast<std::size_t>(omp_get_num_threads()));
    const auto index = static_cast<std::size_t>(omp_get_thread_num());
    Worker worker(index, static_cast<std::size_t>(omp_get_num_threads()), *barrier,
                  profiles.empty() ? nullptr : &profiles[index]);
    body(worker);
    worker.barrier();
  }
}

// As many threads as there are physical cores that this process may run on, by its affinity mask and, in a container,
// by its cgroup's CPU quota. At least 1; looked up once.
std::size_t default_threads();

}  // namespace minimind
