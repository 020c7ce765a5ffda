#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>

#include "weights/base/error.h"

namespace minimind {

// Returns the most memory that a process is resident in while it does `work`, which may throw Error, in bytes.
template <class Work>
std::size_t resident_peak(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const Error&) {
    }
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status)) {
    throw std::runtime_error("the process that was measured did not end by itself");
  }
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

// Returns by how much `work` exceeds a process that does nothing.
template <class Work>
std::size_t peak_memory(const Work& work) {
  const std::size_t before = resident_peak([] {}), with_work = resident_peak(work);
  return with_work > before ? with_work - before : 0;
}

// The sanitizers keep what was freed, and describe all memory.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool can_measure_memory = false;
#else
inline constexpr bool can_measure_memory = true;
#endif

}  // namespace minimind
