#include "runtime/engine/huge_page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace minimind {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t usual_chunk = 16 * huge_page;
constexpr std::size_t alignment = 64;

// Allocates whole huge pages, aligned to their size. Pages that are never touched take no memory.
std::shared_ptr<std::byte> map_chunk(std::size_t size) {
  const std::size_t mapped = size + huge_page;
  void* const address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  const std::size_t skipped = (huge_page - reinterpret_cast<std::uintptr_t>(address) % huge_page) % huge_page;
  std::byte* const begin = static_cast<std::byte*>(address) + skipped;
  madvise(begin, size, MADV_HUGEPAGE);  // a system without huge pages uses small ones
  return {begin, [address, mapped](std::byte*) { munmap(address, mapped); }};
}

}  // namespace

HugePageArena HugePageArena::again() const {
  HugePageArena arena;
  arena.unused_ = chunks_;
  return arena;
}

HugePageArena::Chunk HugePageArena::next_chunk(std::size_t least) {
  const auto found = std::ranges::find_if(unused_, [least](const Chunk& chunk) { return chunk.size >= least; });
  if (found == unused_.end()) {
    const std::size_t size = std::max(usual_chunk, (least + huge_page - 1) / huge_page * huge_page);
    return {map_chunk(size), size};
  }
  const Chunk chunk = *found;
  unused_.erase(found);
  return chunk;
}

std::shared_ptr<std::byte> HugePageArena::take(std::size_t size) {
  if (size > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t aligned = (size + alignment - 1) / alignment * alignment;
  if (chunks_.empty() || aligned > chunks_.back().size - used_) {
    chunks_.push_back(next_chunk(aligned));
    used_ = 0;
  }
  const std::shared_ptr<std::byte>& chunk = chunks_.back().memory;
  std::shared_ptr<std::byte> piece(chunk, chunk.get() + used_);
  used_ += aligned;
  return piece;
}

}  // namespace minimind
