#pragma once

#include <vector>

#include "runtime/kernels/kernels.h"

namespace minimind {

// The tables of kernels that this machine can run.
inline std::vector<const kernels::Table*> tables() {
  const kernels::TableList list = kernels::runnable();
  return {list.tables, list.tables + list.count};
}

}  // namespace minimind
