#pragma once

// The sets of processors of Linux's sched.h, for up to 64.

#include <cstddef>
#include <cstdint>

#define CPU_SETSIZE 64
struct cpu_set_t {
  std::uint64_t bits;
};
#define CPU_ZERO(set) ((set)->bits = 0)
#define CPU_SET(cpu, set) ((set)->bits |= std::uint64_t{1} << (cpu))
#define CPU_ISSET(cpu, set) (((set)->bits >> (cpu)) & 1)
