#pragma once

#include <ctime>

#include "tests/support/cases.h"

namespace minimind {

// Returns the CPU time of this thread.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// What work within the limits of a reader takes at most on a slow machine; without the limits it takes far more.
inline const double most_cpu_seconds = 4 * slowness;

}  // namespace minimind
