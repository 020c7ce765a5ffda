#pragma once
#include_next <sched.h>

#include "tools/other_systems/processor_set.h"

// One processor of each core.
int sched_getaffinity(int process, std::size_t size, cpu_set_t* set);
// Of this thread.
int sched_setaffinity(int process, std::size_t size, const cpu_set_t* set);
int sched_getcpu();
