#include "tools/bench/limits.h"
#include "runtime/kernels/blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "runtime/engine/thread_team.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

// Returns how many passes per second a team does. pass(worker) does one worker's share. Throws Cancelled.
template <class Pass>
double passes_per_second(std::size_t threads, Pass pass) {
  using Clock = std::chrono::steady_clock;
  constexpr double long_enough = 0.05;  // seconds; much longer than starting a team
  const std::atomic<bool>& cancelled = Cancellation::current();
  for (std::size_t passes = 1;; passes *= 2) {
    Clock::time_point start;
    run_team(threads, [&](Worker& worker) {
      pass(worker);
      worker.barrier();
      if (worker.index() == 0) start = Clock::now();
      for (std::size_t i = 0; i < passes && !cancelled; ++i) pass(worker);
    });
    check_cancelled();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds >= long_enough) return static_cast<double>(passes) / seconds;
  }
}

}  // namespace

double measure_reading(const kernels::Table& kernels, std::span<const float> buffer, std::size_t threads) {
  constexpr std::size_t part = std::size_t{1} << 20;  // floats, which are read in less than a millisecond
  const std::atomic<bool>& cancelled = Cancellation::current();
  return static_cast<double>(buffer.size_bytes()) * passes_per_second(threads, [&](const Worker& worker) {
           const Range share = worker.share(buffer.size());
           for (std::size_t at = share.begin; at < share.end && !cancelled; at += part) {
             kernels.read(buffer.data() + at, std::min(part, share.end - at));
           }
         });
}

double measure_multiply_add(const kernels::Table& kernels, std::size_t threads) {
  constexpr std::size_t rounds = 100'000;
  // x = x / 2 + 1 stays near 2.
  const double passes = passes_per_second(threads, [&](const Worker&) { kernels.multiply_add(0.5f, 1.0f, rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * kernels.multiply_adds_per_round);
}

double measure_multiply_add_int8(const kernels::Table& kernels, std::size_t threads) {
  constexpr std::size_t rounds = 1000;
  const double passes = passes_per_second(threads, [&](const Worker&) { kernels.blocks->multiply_add(1, rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * kernels.blocks->multiply_adds_per_round);
}

double measure_multiply_add_bf16(const kernels::Bf16Products& products, std::size_t threads) {
  constexpr std::size_t rounds = 10'000;
  const double passes = passes_per_second(threads, [&](const Worker&) { products.multiply_add(rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * products.multiply_adds_per_round);
}

// On a virtual machine sysconf(_SC_LEVEL3_CACHE_SIZE) returns the cache of the whole processor.
std::size_t last_level_cache_bytes() {
  std::size_t most = 0;
  for (int index = 0;; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::size_t kilobytes = 0;
    char unit = 0;
    if (!(file >> kilobytes >> unit) || unit != 'K') return most;
    most = std::max(most, kilobytes * 1024);
  }
}

}  // namespace minimind
