#pragma once

// Replaces OpenMP's header, which clang does not bring. Without -fopenmp, one thread does all work.
inline int omp_get_num_threads() {
  return 1;
}
inline int omp_get_thread_num() {
  return 0;
}
enum omp_pause_resource_t { omp_pause_soft };
inline int omp_pause_resource_all(omp_pause_resource_t) {
  return 0;
}
