#pragma once
#include_next <sched.h>

#include <cstddef>
#include <cstdint>

#define CPU_SETSIZE 64
struct cpu_set_t {
  std::uint64_t bits;
};
#define CPU_ZERO(set) ((set)->bits = 0)
#define CPU_SET(cpu, set) ((set)->bits |= std::uint64_t{1} << (cpu))
#define CPU_ISSET(cpu, set) (((set)->bits >> (cpu)) & 1)

// One processor for each fast core.
int sched_getaffinity(int process, std::size_t size, cpu_set_t* set);
// This system does not bind threads to cores.
inline int sched_setaffinity(int, std::size_t, const cpu_set_t*) {
  return -1;
}
