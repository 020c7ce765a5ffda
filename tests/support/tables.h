#pragma once

#include <vector>

#include "runtime/kernels/all_instruction_sets.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The tables of kernels that this machine can run.
inline std::vector<const kernels::Table*> tables() {
  std::vector<const kernels::Table*> tables;
  for (const kernels::Table& table : kernels::runnable()) tables.push_back(&table);
  return tables;
}

// The best table with each of the products of bf16 that this machine can run. May be empty.
inline std::vector<kernels::Table> bf16_tables() {
  const kernels::Bf16List list = kernels::runnable_bf16();
  std::vector<kernels::Table> tables;
  for (std::size_t i = 0; i < list.count; ++i) {
    tables.push_back(kernels::runnable().front());
    tables.back().bf16 = list.products[i];
  }
  return tables;
}

}  // namespace minimind
