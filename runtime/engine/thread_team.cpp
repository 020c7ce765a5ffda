#include "runtime/engine/thread_team.h"

#include <sched.h>
#if defined(__GLIBC__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/parallel.h"
#include "weights/base/text.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

// About 100 microseconds: longer than threads wait for each other after an evenly divided step.
constexpr int spins_before_sleeping = 10000;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the text of a file of the system, empty if there is none.
std::string text_of_system(const std::string& path) {
  try {
    return read_text_file(path);
  } catch (const Error&) {
    return "";
  }
}

// The logical processors that this process may use.
std::vector<int> allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

// Hyper-threads of one core share its arithmetic units, so they count once.
std::size_t allowed_cores() {
  std::set<std::string> cores;
  for (const int processor : allowed_processors()) {
    const std::string name = std::to_string(processor);
    const std::string siblings =
        text_of_system("/sys/devices/system/cpu/cpu" + name + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? name : siblings);
  }
  return std::max<std::size_t>(1, cores.size());
}

// The cgroup v2 limit "quota period" in microseconds, or "max period".
std::size_t quota_cores() {
  const std::string text = text_of_system("/sys/fs/cgroup/cpu.max");
  std::string_view rest = text;
  const auto quota = take_number<std::size_t>(rest);
  rest = trimmed(rest);
  const auto period = take_number<std::size_t>(rest);
  return quota && period && *period > 0 ? std::max<std::size_t>(1, *quota / *period) : SIZE_MAX;
}

// Binds the calling thread to the processor of this index, if there is one.
void use_processor(const std::vector<int>& processors, std::size_t index) {
  if (index >= processors.size()) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processors[index], &own);
  sched_setaffinity(0, sizeof own, &own);
}

// Asks for the shortest time slices for the calling thread, which Linux gives since 6.12. Its share of a core stays the
// same, but it runs as soon as it is woken, even beside programs that never wait.
void take_short_slices() noexcept {
#if defined(__GLIBC__)  // not in the program for Android, which may end one that asks
  struct {              // sched_attr of linux/sched/types.h, which cannot be included beside sched.h
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } own{};
  const bool is_known = syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0;
  own.runtime = 100'000;  // nanoseconds
  if (is_known && (own.policy == SCHED_OTHER || own.policy == SCHED_BATCH)) syscall(SYS_sched_setattr, 0, &own, 0);
#endif
}

// Threads that are kept for calls.
class Team {
 public:
  Team(std::size_t count, const std::vector<int>* on) : threads(count), processors(on) {
    const HeldSignals held;
    const std::scoped_lock starting(starting_);
    try {
      while (threads_.size() + 1 < threads) {
        threads_.emplace_back([this, index = threads_.size() + 1] {
          take_short_slices();
          if (processors) use_processor(*processors, index);
          work(index);
        });
      }
    } catch (const std::system_error&) {  // the system gives no more
    }
    between_calls_.emplace(threads_.size() + 1);
    in_call_.emplace(threads_.size() + 1);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    call_ = nullptr;
    between_calls_->wait(0);
    for (std::thread& thread : threads_) thread.join();
  }

  std::chrono::nanoseconds run(const TeamCall& call) {
    const auto slept_before = in_call_->slept();
    call_ = &call;
    between_calls_->wait(0);
    call(0, *in_call_);
    between_calls_->wait(0);
    return in_call_->slept() - slept_before;
  }

  const std::size_t threads;                 // requested
  const std::vector<int>* const processors;  // one for each, if they have been spread

 private:
  void work(std::size_t index) {
    { const std::scoped_lock started(starting_); }
    while (true) {
      between_calls_->wait(index);
      if (!call_) return;
      (*call_)(index, *in_call_);
      between_calls_->wait(index);
    }
  }

  std::vector<std::thread> threads_;
  std::optional<Barrier> between_calls_, in_call_;
  std::mutex starting_;  // held until all threads are there
  const TeamCall* call_ = nullptr;
};

// Between calls, teams belong to no thread: on Windows, a thread that ends cannot wait for the end of others.
constinit std::atomic<Team*> kept[16];
thread_local constinit const std::vector<int>* spread_on = nullptr;

// In place of another team, which ends, if there are many.
void keep(std::unique_ptr<Team> team) {
  for (std::atomic<Team*>& place : kept) {
    Team* none = nullptr;
    if (place.compare_exchange_strong(none, team.get())) return static_cast<void>(team.release());
  }
  team.reset(kept[0].exchange(team.release()));
}

std::unique_ptr<Team> take_team(std::size_t threads) {
  for (std::atomic<Team*>& place : kept) {
    std::unique_ptr<Team> team(place.exchange(nullptr));
    if (team && team->threads == threads && team->processors == spread_on) return team;
    if (team) keep(std::move(team));
  }
  return std::make_unique<Team>(threads, spread_on);
}

#if !defined(_WIN32)  // where all other threads have ended before, so that nothing can wait for them
[[maybe_unused]] const int at_exit = std::atexit(end_teams);
#endif

}  // namespace

Barrier::Barrier(std::size_t count)
    : count_(count),
      spins_(count <= default_threads() ? spins_before_sleeping : 0),
      processors_(std::make_unique<std::atomic<int>[]>(count)) {}

void Barrier::wait(std::size_t index) noexcept {
  const std::uint32_t round = round_.load(std::memory_order_acquire);
  const int processor = sched_getcpu() + 1;                             // 0: unknown
  if (processors_[index] != processor) processors_[index] = processor;  // seldom, as the other threads read it
  const bool is_alone = processor == 0 || std::count(&processors_[0], &processors_[count_], processor) == 1;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    return end_round(round);
  }
  for (int spins = 0; is_alone && spins < spins_; ++spins) {
    if (round_.load(std::memory_order_acquire) != round) return;
    pause_briefly();
  }
  const auto start = std::chrono::steady_clock::now();
  sleep_in_round(round);
  slept_.fetch_add(static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count()),
                   std::memory_order_relaxed);
}

#if defined(__linux__) && !defined(MINIMIND_WITHOUT_FUTEX)  // or see `make test-portable`

void Barrier::end_round(std::uint32_t round) noexcept {
  round_.store(round + 1);  // before what notify_all() reads
  round_.notify_all();
}

void Barrier::sleep_in_round(std::uint32_t round) noexcept {
  round_.wait(round, std::memory_order_acquire);
}

#else

void Barrier::end_round(std::uint32_t round) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    round_.store(round + 1, std::memory_order_release);
  }
  ended_.notify_all();
}

void Barrier::sleep_in_round(std::uint32_t round) noexcept {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != round; });
}

#endif

void TeamSize::note(Clock::duration whole, Clock::duration slept, Clock::time_point now) {
  if (threads_ < most_ && now >= rests_until_) {
    ++threads_;
    whole_ = slept_ = {};
    return;
  }
  whole_ += whole;
  slept_ += slept;
  if (whole_ < shortest_trial) return;
  if (slept_ * threads_ > whole_) {
    --threads_;
    rests_until_ = now + rest_;
    rest_ = std::min(2 * rest_, longest_rest);
  } else if (threads_ == most_) {
    rest_ = std::max(rest_ / 2, shortest_rest);
  }
  whole_ = slept_ = {};
}

std::size_t default_threads() {
  static const std::size_t threads = std::min(allowed_cores(), quota_cores());
  return threads;
}

std::chrono::nanoseconds call_on_team(std::size_t threads, const TeamCall& call) {
  if (threads <= 1) {
    Barrier alone(1);
    call(0, alone);
    return {};
  }
  [[maybe_unused]] thread_local const bool has_short_slices = (take_short_slices(), true);
  std::unique_ptr<Team> team = take_team(threads);
  const auto slept = team->run(call);
  keep(std::move(team));
  return slept;
}

void spread_team(std::size_t threads) {
  static const auto& processors = *new std::vector<int>(allowed_processors());  // for threads that outlive all else
  if (processors.size() != threads) return;
  spread_on = &processors;
  use_processor(processors, 0);
}

void end_teams() {
  for (std::atomic<Team*>& place : kept) delete place.exchange(nullptr);
}

}  // namespace minimind
