#pragma once

#include <cstddef>

#include "runtime/kernels/kernels.h"

// The products of bf16, which a table of kernels may have in addition.

namespace minimind::kernels {

// Returns the products of bf16 that this machine can run, best first. May be empty.
struct Bf16List {
  const Bf16Products* products[2];
  std::size_t count;
};
Bf16List runnable_bf16();

// Returns `table` with the best of them, or nullptr if there are none or `table` is not the best for this machine.
const Table* with_bf16(const Table& table);

}  // namespace minimind::kernels
