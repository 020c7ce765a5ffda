#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/engine/kv_cache.h"

namespace minimind {

// Returns the memory of the first `size` positions of a cache, to save or to restore. One after the other the parts
// have the same bytes in a cache of any capacity and any division: for each layer and kv head the arrays of KvPanels,
// in their order.
std::vector<std::span<std::byte>> filled_cells(const KvCache& cache, std::size_t size);

}  // namespace minimind
