#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace minimind {

// Memory for the weights of a model, allocated piece by piece and freed together: each piece keeps its chunk alive.
// Asks the system for huge pages (2 MB instead of 4 KB): a model may fit in the L3 cache while its small pages exceed
// the reach of the processor's address translation (TLB), which then slows decoding down.
class HugePageArena {
 public:
  // Returns `size` uninitialised bytes, aligned to 64. Throws std::bad_alloc.
  std::shared_ptr<std::byte> take(std::size_t size);

  // Returns an arena whose pieces are in the memory of this one's, as far as that suffices: the system would have to
  // find and clear new pages. Who writes to a piece of the one replaces those of the other.
  HugePageArena again() const;

  // Frees the memory that again() found and that no piece has taken.
  void free_unused() { unused_.clear(); }

 private:
  struct Chunk {
    std::shared_ptr<std::byte> memory;
    std::size_t size;
  };
  Chunk next_chunk(std::size_t least);

  std::vector<Chunk> chunks_;  // pieces are taken from the last one
  std::vector<Chunk> unused_;
  std::size_t used_ = 0;  // of the last chunk
};

}  // namespace minimind
