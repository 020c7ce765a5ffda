#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/kv_cells.h"
#include "runtime/engine/matrix.h"
#include "runtime/kernels/kernels.h"
#include "weights/model/config.h"

namespace minimind {

// The keys and values of one text, in parts. Several texts that start with the same tokens may have the same first
// parts: these are in memory once, and attention reads them once for all of these texts in a batch. A part that several
// caches have is never written.
class KvCache {
 public:
  struct Part {
    Range positions;  // of the text; the first is a multiple of 32
    std::shared_ptr<KvCells> cells;
  };

  // Positions of a part that texts may share. To share a smaller one costs more time than it saves.
  static constexpr std::size_t smallest_part = 64;

  // `cuts`: positions at which a part ends, because other texts may start with the same tokens up to there. They are
  // rounded down to multiples of 32, and those that would make a part of few positions are omitted. Throws Error as
  // KvCells does.
  KvCache(const Config& config, std::size_t capacity, KvType type = KvType::f32,
          std::initializer_list<std::size_t> cuts = {});

  // A cache that has the first `size` positions of another one, which must fit: whole parts are shared, the rest is
  // copied.
  KvCache(const KvCache& from, std::size_t size, std::size_t capacity, std::initializer_list<std::size_t> cuts = {});
  KvCache(KvCache&&) = default;
  KvCache& operator=(KvCache&&) = default;

  std::size_t capacity() const { return parts_.back().positions.end; }
  KvType type() const { return shape_.type; }

  // All parts, in order.
  std::span<const Part> parts() const { return parts_; }
  const Part& part_of(std::size_t position) const;

  // Returns how many of the first `size` positions are in whole parts, which another cache would share.
  std::size_t shareable(std::size_t size) const;

  // Whether no other cache has positions from this one on.
  bool is_own(std::size_t first) const;

  // Allocates positions from `first` on again, unless is_own(), so that they may be written. The values of earlier
  // positions stay.
  void make_own(std::size_t first);

  // Writes a position, which must be its own, as KvCells does.
  void put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  // Returns the bytes of one position's keys and values in all layers, which attending to it reads.
  static std::size_t bytes_per_position(const Config& config, KvType type);

  // Returns the bytes of a cache of `capacity` positions, which are in whole blocks of 32.
  static std::size_t bytes(const Config& config, KvType type, std::size_t capacity);

 private:
  void add_parts(std::size_t capacity, std::initializer_list<std::size_t> cuts);
  void copy(const KvCache& from, Range positions);

  KvShape shape_;
  std::vector<Part> parts_;
};

}  // namespace minimind
