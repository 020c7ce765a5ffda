#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "runtime/engine/matrix.h"
#include "runtime/engine/profile.h"

namespace minimind {

// Returns the `index`-th of `count` nearly equal parts of [0, n), in order.
constexpr Range share_of(std::size_t n, std::size_t index, std::size_t count) {
  const std::size_t size = n / count, larger = n % count;
  const std::size_t begin = index * size + (index < larger ? index : larger);
  return {begin, begin + size + (index < larger ? 1 : 0)};
}

// Lets threads wait for each other many times per token. A waiting thread spins for a while, which is fastest if every
// thread has a separate core, then sleeps. Unlike a thread that yields, a sleeping thread is woken as soon as there is
// work, even if another program uses its core. On a busy machine the system runs several threads of a team on one core,
// where they come one after the other: there a thread sleeps at once, so that the next one runs.
class Barrier {
 public:
  explicit Barrier(std::size_t count);
  std::size_t count() const { return count_; }

  // `index` is that of the calling thread, less than count().
  void wait(std::size_t index) noexcept;

  // Returns for how long a thread has slept here, as the mean of those that did not come last.
  std::chrono::nanoseconds slept() const { return std::chrono::nanoseconds(count_ > 1 ? slept_ / (count_ - 1) : 0); }

 private:
  void end_round(std::uint32_t round) noexcept;
  void sleep_in_round(std::uint32_t round) noexcept;

  const std::size_t count_;
  std::atomic<std::uint64_t> slept_{0};  // nanoseconds of all threads
  const int spins_;  // 0 if there are more threads than cores, since spinning would slow the other threads down
  std::unique_ptr<std::atomic<int>[]> processors_;  // on which each thread was last, plus 1; 0: unknown
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
#if !defined(__linux__) || defined(MINIMIND_WITHOUT_FUTEX)
  // On systems without futexes, std::atomic::wait() of GCC 12 looks at the number before it takes its lock, so that a
  // thread can miss that it is woken.
  std::mutex mutex_;
  std::condition_variable ended_;
#endif
};

// How many threads of a team are worth having on a machine that other programs use as well: all threads wait at each
// barrier for one that the system has stopped. A team of n threads that sleeps more than an n-th of its time is slower
// than n - 1 threads would be. After a rest, which doubles while that does not change, the larger team is tried again.
class TeamSize {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TeamSize(std::size_t most) : most_(most), threads_(most) {}

  std::size_t most() const { return most_; }
  std::size_t threads() const { return threads_; }

  // Takes the time of a run that ended `now`, and for how long its threads slept.
  void note(Clock::duration whole, Clock::duration slept, Clock::time_point now);

 private:
  static constexpr Clock::duration shortest_trial = std::chrono::milliseconds(10), shortest_rest = 2 * shortest_trial,
                                   longest_rest = 32 * shortest_rest;

  std::size_t most_, threads_;
  Clock::duration whole_{}, slept_{}, rest_ = shortest_rest;
  Clock::time_point rests_until_{};
};

// Looks at what forward passes compute.
class Observer {
 public:
  virtual ~Observer() = default;

  // Takes values of a point, which are valid during the call alone. The points of runtime/inside/points.h come in the
  // order of the equations, each without "model." and the prefix of its layer. Values are rows of the batch from `row`
  // on; of an FFN, slots; of the norms, RoPE and scores of attention, one row of `head`.
  virtual void see(std::string_view point, Matrix<const float> values, std::size_t row, std::size_t head) = 0;
};

// One thread of a running team.
class Worker {
 public:
  // `profile` may be null.
  Worker(std::size_t index, std::size_t count, Barrier& barrier, ThreadProfile* profile)
      : index_(index), count_(count), barrier_(&barrier), profile_(profile) {
    if (profile_) profile_->start();
  }

  // Returns the same thread as the only one of a team, for what it does without the others.
  Worker alone() const {
    Worker worker = *this;
    worker.count_ = 1;
    return worker;
  }

  std::size_t index() const { return index_; }  // also if it is alone: that of its memory
  std::size_t count() const { return count_; }
  Range share(std::size_t n) const { return count_ == 1 ? Range{0, n} : share_of(n, index_, count_); }

  // Returns when every worker of the team has called it. All that they wrote before is then visible to every worker.
  void barrier() noexcept {
    const Operation interrupted = profile_ ? profile_->enter(Operation::barrier_wait) : Operation{};
    if (count_ > 1) barrier_->wait(index_);
    if (profile_) profile_->enter(interrupted);
  }

  // Charges this thread's time to `operation` from now on, if profiling.
  void begin(Operation operation) const noexcept {
    if (profile_) profile_->enter(operation);
  }

  // From now on, shows points to `observer`, unless it is null: all that the team computes, if this is its only thread.
  void set_observer(Observer* observer) noexcept { observer_ = observer; }
  bool is_observed() const { return observer_ != nullptr; }
  void show(const char* point, Matrix<const float> values, std::size_t row = 0, std::size_t head = 0) const {
    if (observer_) observer_->see(point, values, row, head);
  }

 private:
  std::size_t index_, count_;
  Barrier* barrier_;
  ThreadProfile* profile_;
  Observer* observer_ = nullptr;
};

// Calls call(index, barrier) on `threads` threads at once, of which the calling one has index 0; the barrier is of all
// of them. The system may give fewer threads than requested. Returns for how long they slept, as Barrier::slept().
using TeamCall = std::function<void(std::size_t index, Barrier& barrier)>;
std::chrono::nanoseconds call_on_team(std::size_t threads, const TeamCall& call);

// Runs body(Worker&) on `threads` threads at once; `body` must not throw. The system may give fewer threads than
// requested, so workers must use their count(). `profiles` has one per thread, or none. Only the calling thread
// receives signals. The others are kept for a next call, of any thread, for which they spin for a while, then sleep.
// Returns what call_on_team() does.
template <class Body>
std::chrono::nanoseconds run_team(std::size_t threads, Body&& body, std::span<ThreadProfile> profiles = {}) {
  return call_on_team(threads, [&](std::size_t index, Barrier& barrier) {
    Worker worker(index, barrier.count(), barrier, profiles.empty() ? nullptr : &profiles[index]);
    body(worker);
    worker.barrier();
  });
}

// The same with as many threads as are worth having.
template <class Body>
void run_team(TeamSize& size, Body&& body, std::span<ThreadProfile> profiles = {}) {
  const auto start = TeamSize::Clock::now();
  const auto slept = run_team(size.threads(), body, profiles);
  const auto end = TeamSize::Clock::now();
  size.note(end - start, slept, end);
}

// Returns the number of physical cores that this process may use, limited by its affinity mask and, in a container, by
// its cgroup's CPU quota. At least 1; computed once.
std::size_t default_threads();

// From now on, the threads on which run_team() runs what this thread calls have a core each, if `threads` is how many
// this process may use. The scheduler of the system otherwise tends to wake a thread on the core of the thread that
// wakes it, where both then wait for each other.
void spread_team(std::size_t threads);

// Ends the threads that run_team() keeps for a next call, as before a fork(), after which the child has none of them.
void end_teams();

}  // namespace minimind
