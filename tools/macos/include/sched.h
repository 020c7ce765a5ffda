#pragma once
#include_next <sched.h>

#include "tools/other_systems/processor_set.h"

// One processor for each fast core.
int sched_getaffinity(int process, std::size_t size, cpu_set_t* set);
// This system does not bind threads to cores.
inline int sched_setaffinity(int, std::size_t, const cpu_set_t*) {
  return -1;
}
// Nor does it say on which one a thread runs.
inline int sched_getcpu() {
  return -1;
}
