#pragma once

#include <ctime>

namespace minimind {

// Returns the CPU time of this thread.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// What work within the limits of a reader takes at most on a slow machine; without the limits it takes far more. 64-bit
// ARM is tested under emulation (make test-arm64).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__aarch64__)
inline constexpr double most_cpu_seconds = 60;
#else
inline constexpr double most_cpu_seconds = 4;
#endif

}  // namespace minimind
