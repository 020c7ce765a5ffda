#include "runtime/engine/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>
#if defined(__GLIBC__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

namespace minimind {
namespace {

std::set<int> processors_of_this_thread() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::set<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.insert(processor);
  }
  return processors;
}

TEST(ShareOf, PartsCoverTheRangeOnceInOrder) {
  for (const std::size_t n : {0u, 1u, 5u, 16u, 101u}) {
    for (const std::size_t count : {1u, 2u, 3u, 8u}) {
      std::size_t next = 0;
      for (std::size_t index = 0; index < count; ++index) {
        const Range part = share_of(n, index, count);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.end - part.begin, n / count + 1);
        next = part.end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(RunTeam, EveryWorkerRunsOnceWithItsIndex) {
  for (const std::size_t threads : {1u, 2u, 3u, 8u}) {
    std::vector<std::atomic<int>> runs(threads);
    run_team(threads, [&](Worker& worker) {
      EXPECT_EQ(worker.count(), threads);
      ++runs[worker.index()];
    });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

// More threads than this machine may have cores, so that waiting threads must sleep.
TEST(RunTeam, NoWorkerPassesABarrierBeforeAllArrive) {
  constexpr std::size_t threads = 8, rounds = 500;
  std::vector<std::size_t> reached(threads);
  std::atomic<int> early{0};
  run_team(threads, [&](Worker& worker) {
    for (std::size_t round = 1; round <= rounds; ++round) {
      reached[worker.index()] = round;
      worker.barrier();
      for (const std::size_t other : reached) early += other != round;
      worker.barrier();
    }
  });
  EXPECT_EQ(early, 0);
}

using std::chrono::milliseconds;

// On a thread of its own, which has one processor from then on.
TEST(SpreadTeam, GivesEachThreadAProcessorOfItsOwnAlsoWhenItsSizeChanges) {
  const std::set<int> allowed = processors_of_this_thread();
  const std::size_t threads = allowed.size();
  if (threads == 1) GTEST_SKIP() << "this machine has one processor";
  std::thread([&] {
    spread_team(threads);
    for (const std::size_t size : {threads, threads + 1, threads}) {
      std::vector<std::set<int>> used(size);
      run_team(size, [&](Worker& worker) { used[worker.index()] = processors_of_this_thread(); });
      std::set<int> all;
      for (std::size_t i = 0; i < threads; ++i) {
        EXPECT_EQ(used[i].size(), 1u);
        all.insert(used[i].begin(), used[i].end());
      }
      EXPECT_EQ(all, allowed);
    }
  }).join();
}

TEST(TeamSize, FallsIfMoreSleepsThanOneThreadWouldDo) {
  const TeamSize::Clock::time_point now = TeamSize::Clock::now();
  TeamSize sleepy(4), awake(4);
  sleepy.note(milliseconds(100), milliseconds(26), now);
  awake.note(milliseconds(100), milliseconds(24), now);
  EXPECT_EQ(sleepy.threads(), 3u);
  EXPECT_EQ(awake.threads(), 4u);
}

TEST(TeamSize, JudgesNoShortTime) {
  const TeamSize::Clock::time_point now = TeamSize::Clock::now();
  TeamSize size(2);
  size.note(milliseconds(4), milliseconds(4), now);
  size.note(milliseconds(4), milliseconds(0), now);
  EXPECT_EQ(size.threads(), 2u);
  size.note(milliseconds(4), milliseconds(4), now);
  EXPECT_EQ(size.threads(), 1u);
}

// Returns for how long the team stays smaller if all its time is slept once it has its full size again.
milliseconds rest_of(TeamSize& size, TeamSize::Clock::time_point& now) {
  while (size.threads() == size.most()) size.note(milliseconds(10), milliseconds(10), now);
  const auto start = now;
  while (size.threads() < size.most()) size.note(milliseconds(1), milliseconds(0), now += milliseconds(1));
  return std::chrono::duration_cast<milliseconds>(now - start);
}

TEST(TeamSize, RestsTwiceAsLongWhileTheMachineStaysBusy) {
  TeamSize::Clock::time_point now = TeamSize::Clock::now();
  TeamSize size(2);
  EXPECT_EQ(rest_of(size, now), milliseconds(20));
  EXPECT_EQ(rest_of(size, now), milliseconds(40));
  for (int i = 0; i < 10; ++i) rest_of(size, now);
  EXPECT_EQ(rest_of(size, now), milliseconds(640));
  for (int i = 0; i < 10; ++i) size.note(milliseconds(10), milliseconds(0), now);
  EXPECT_EQ(rest_of(size, now), milliseconds(20));
}

TEST(RunTeam, CountsTheTimeInWhichThreadsSleep) {
  EXPECT_EQ(run_team(1, [](Worker&) {}), milliseconds(0));
  const auto slept = run_team(3, [](Worker& worker) {
    if (worker.index() == 0) std::this_thread::sleep_for(milliseconds(50));
  });
  EXPECT_GE(slept, milliseconds(20));
}

// Returns the processor time that a thread of a team takes for a barrier, in seconds.
double time_of_barrier(std::size_t threads) {
  constexpr std::size_t rounds = 200;
  const std::clock_t before = std::clock();
  run_team(threads, [&](Worker& worker) {
    for (std::size_t round = 0; round < rounds; ++round) worker.barrier();
  });
  return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / static_cast<double>(rounds * threads);
}

// A team of more threads than cores never spins. Spinning takes ten times as long as to sleep and wake, or more.
TEST(RunTeam, ThreadsOnOneProcessorWaitWithoutSpinning) {
  if (default_threads() == 1) GTEST_SKIP() << "this machine has one core";
  end_teams();
  std::thread([&] {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(*processors_of_this_thread().begin(), &first);
    ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    EXPECT_LT(time_of_barrier(2), 5 * time_of_barrier(default_threads() + 1));
  }).join();
  end_teams();
}

#if defined(__GLIBC__)
// Returns the time slice of the calling thread in nanoseconds; 0 before Linux 6.12.
std::uint64_t slice_of_this_thread() {
  std::uint64_t words[6] = {};  // sched_attr: the fourth is sched_runtime
  syscall(SYS_sched_getattr, 0, words, sizeof words, 0);
  return words[3];
}

TEST(RunTeam, EveryThreadHasTheShortestTimeSlicesAndItsNiceness) {
  if (slice_of_this_thread() == 0) GTEST_SKIP() << "before Linux 6.12 threads cannot choose time slices";
  end_teams();
  std::thread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5), 0);
    std::array<std::uint64_t, 2> slices{};
    std::array<int, 2> niceness{};
    run_team(slices.size(), [&](Worker& worker) {
      slices[worker.index()] = slice_of_this_thread();
      niceness[worker.index()] = getpriority(PRIO_PROCESS, 0);
    });
    EXPECT_EQ(slices, (std::array<std::uint64_t, 2>{100'000, 100'000}));
    EXPECT_EQ(niceness, (std::array{5, 5}));
  }).join();
  end_teams();
}
#endif

TEST(DefaultThreads, IsAtLeastOne) {
  EXPECT_GE(default_threads(), 1u);
}

TEST(RunTeam, OnlyTheCallingThreadReceivesSignals) {
  std::array<std::atomic<int>, 5> held{};
  run_team(held.size(), [&](Worker& worker) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) held[worker.index()] += sigismember(&mask, signal);
  });
  EXPECT_EQ(held[0], 0);
  for (std::size_t i = 1; i < held.size(); ++i) EXPECT_EQ(held[i], 4) << i;
}

}  // namespace
}  // namespace minimind
