#pragma once

#include <cstddef>

#include "runtime/kernels/kernels.h"

// Which instruction sets this machine can run.

namespace minimind::kernels {

// Returns the tables of this build that this machine can run, best first. Never empty.
struct TableList {
  const Table* tables[5];
  std::size_t count;
};
TableList runnable();

// Returns the best of them, or the one that the environment variable MINIMIND_ISA names. Throws std::runtime_error,
// listing the available ones, if that name is unknown or cannot run here.
const Table& choose();

// Returns the products of bf16 that this machine can run, best first. May be empty.
struct Bf16List {
  const Bf16Products* products[2];
  std::size_t count;
};
Bf16List runnable_bf16();

// Returns `table` with the best of them, or nullptr if there are none or `table` is not the best for this machine.
const Table* with_bf16(const Table& table);

}  // namespace minimind::kernels
