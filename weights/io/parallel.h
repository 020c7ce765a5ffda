#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "weights/io/held_signals.h"

namespace minimind {

// Calls work(i) for i in [0, count) on `threads` threads, in any order; rethrows an exception of any of them.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, const Work& work) {
  std::exception_ptr failure;
  std::optional<HeldSignals> held(std::in_place);  // until the other threads have started
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
#pragma omp master
    held.reset();
#pragma omp for schedule(dynamic)
    for (std::size_t i = 0; i < count; ++i) {
      try {
        work(i);
      } catch (...) {
#pragma omp critical(minimind_parallel_failure)
        if (!failure) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace minimind
