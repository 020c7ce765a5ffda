#pragma once

#include <vector>

#include "runtime/kernels/all_instruction_sets.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The tables of kernels that this machine can run.
inline std::vector<const kernels::Table*> tables() {
  const kernels::TableList list = kernels::runnable();
  return {list.tables, list.tables + list.count};
}

// The best table with each of the products of bf16 that this machine can run. May be empty.
inline std::vector<kernels::Table> bf16_tables() {
  const kernels::Bf16List list = kernels::runnable_bf16();
  std::vector<kernels::Table> tables;
  for (std::size_t i = 0; i < list.count; ++i) {
    tables.push_back(*kernels::runnable().tables[0]);
    tables.back().bf16 = list.products[i];
  }
  return tables;
}

}  // namespace minimind
