#include "runtime/engine/filled_cells.h"

#include <algorithm>

namespace minimind {

std::vector<std::span<std::byte>> filled_cells(const KvCache& cache, std::size_t size) {
  const KvShape& shape = cache.parts().front().cells->shape();
  std::vector<std::span<std::byte>> filled;
  for (std::size_t head = 0; head < shape.layers * shape.kv_heads; ++head) {
    std::vector<std::vector<std::span<std::byte>>> arrays;  // of each part
    for (const auto& [positions, cells] : cache.parts()) {
      const std::size_t end = std::clamp(size, positions.begin, positions.end);
      arrays.push_back(cells->parts(head / shape.kv_heads, head % shape.kv_heads, {0, end - positions.begin}));
    }
    for (std::size_t i = 0; i < arrays.front().size(); ++i) {
      for (const auto& of_part : arrays) {
        if (!of_part[i].empty()) filled.push_back(of_part[i]);
      }
    }
  }
  return filled;
}

}  // namespace minimind
