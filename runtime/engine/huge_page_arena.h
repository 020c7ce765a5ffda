#pragma once

#include <cstddef>
#include <memory>

namespace minimind {

// Memory for the weights of a model, allocated piece by piece and freed together: each piece keeps its chunk alive.
// Asks the system for huge pages (2 MB instead of 4 KB): a model may fit in the L3 cache while its small pages exceed
// the reach of the processor's address translation (TLB), which then slows decoding down.
class HugePageArena {
 public:
  // Returns `size` uninitialised bytes, aligned to 64. Throws std::bad_alloc.
  std::shared_ptr<std::byte> take(std::size_t size);

 private:
  std::shared_ptr<std::byte> chunk_;
  std::size_t chunk_size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace minimind
