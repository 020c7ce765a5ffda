#pragma once

#include <cstddef>
#include <span>

#include "runtime/kernels/kernels.h"

namespace minimind {

// What a machine gives at best, each measured for at least 50 ms after one untimed pass.

// Bytes per second of `threads` threads that read a buffer, not empty, again and again, each a part of its own.
double measure_reading(const kernels::Table& kernels, std::span<const float> buffer, std::size_t threads);

// Floating-point operations per second of `threads` threads that multiply and add in registers alone.
double measure_multiply_add(const kernels::Table& kernels, std::size_t threads);

// Likewise of 8-bit integers.
double measure_multiply_add_int8(const kernels::Table& kernels, std::size_t threads);

// Of the largest cache of the first core; 0 where the system does not tell.
std::size_t last_level_cache_bytes();

}  // namespace minimind
