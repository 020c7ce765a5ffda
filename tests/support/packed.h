#pragma once

#include <cstddef>

#include "runtime/engine/pack.h"

namespace minimind {

// Lays out one matrix as the type that packed_type returns.
inline WeightMatrix pack(const StoredTensor& tensor, WeightType type, std::size_t threads,
                         Compute compute = Compute::f32) {
  HugePageArena memory;
  Packer packer(memory);
  WeightMatrix matrix = packer.add(tensor, packed_type(tensor, type, threads), compute);
  packer.finish(threads);
  return matrix;
}

}  // namespace minimind
