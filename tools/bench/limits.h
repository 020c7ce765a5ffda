#pragma once

#include <cstddef>
#include <span>

#include "runtime/kernels/kernels.h"

namespace minimind {

// The peak speeds of the machine, each measured for at least 50 ms after one untimed pass.

// Returns the bytes per second of `threads` threads that read a non-empty buffer repeatedly, each a separate part.
double measure_reading(const kernels::Table& kernels, std::span<const float> buffer, std::size_t threads);

// Returns the floating-point operations per second of `threads` threads that multiply and add in registers only.
double measure_multiply_add(const kernels::Table& kernels, std::size_t threads);

// Returns the 8-bit integer operations per second of such threads.
double measure_multiply_add_int8(const kernels::Table& kernels, std::size_t threads);

// Returns the floating-point operations per second of such threads that multiply bf16.
double measure_multiply_add_bf16(const kernels::Bf16Products& products, std::size_t threads);

// Returns the size of the first core's largest cache; 0 if the system does not report it.
std::size_t last_level_cache_bytes();

}  // namespace minimind
