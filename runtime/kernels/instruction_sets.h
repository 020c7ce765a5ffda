#pragma once

#include <span>

#include "runtime/kernels/kernels.h"

// Which instruction sets this machine can run.

namespace minimind::kernels {

// A table of kernels, and whether this machine runs it.
struct InstructionSet {
  Table (*table)();
  bool (*runs_here)();
};

// Those of this program, best first; every machine runs the last. Every program defines its list:
// all_instruction_sets.cpp has that of all.
extern const std::span<const InstructionSet> instruction_sets;

// Those of f32, f16, bf16 and q8_0 alone: no other blocks, no AMX.
extern const std::span<const InstructionSet> plain_instruction_sets;

// Returns the table with this product of q8_0 and this name.
Table with_q8_0(Table table, ProductOf<Q8Block> product, const char* name);

// Returns the tables of this build that this machine can run, best first. Never empty.
std::span<const Table> runnable();

// Returns the best of them, or the one that the environment variable MINIMIND_ISA names. Throws std::runtime_error,
// listing the available ones, if that name is unknown or cannot run here.
const Table& choose();

}  // namespace minimind::kernels
