#include "runtime/engine/kv_cache.h"

#include <algorithm>
#include <cassert>

namespace minimind {
namespace {

KvShape shape_of(const Config& config, KvType type) {
  return {type, config.num_hidden_layers, config.num_key_value_heads, config.head_dim};
}

Range intersection(Range a, Range b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Range relative_to(std::size_t first, Range positions) {
  return {positions.begin - first, positions.end - first};
}

}  // namespace

KvCache::KvCache(const Config& config, std::size_t capacity, KvType type, std::initializer_list<std::size_t> cuts)
    : shape_(shape_of(config, type)) {
  add_parts(capacity, cuts);
}

KvCache::KvCache(const KvCache& from, std::size_t size, std::size_t capacity, std::initializer_list<std::size_t> cuts)
    : shape_(from.shape_) {
  assert(size <= from.capacity() && size <= capacity);
  const std::size_t shared = from.shareable(size);
  for (const Part& part : from.parts_) {
    if (part.positions.end <= shared) parts_.push_back(part);
  }
  add_parts(capacity, cuts);
  copy(from, {shared, size});
}

void KvCache::add_parts(std::size_t capacity, std::initializer_list<std::size_t> cuts) {
  std::size_t first = parts_.empty() ? 0 : parts_.back().positions.end;
  const auto add = [&](std::size_t end) {
    parts_.push_back({{first, end}, std::make_shared<KvCells>(shape_, end - first)});
    first = end;
  };
  for (const std::size_t cut : cuts) {
    const std::size_t end = cut / kernels::block_cols * kernels::block_cols;
    if (end >= first + smallest_part && end < capacity) add(end);
  }
  if (first < capacity || parts_.empty()) add(capacity);
}

void KvCache::copy(const KvCache& from, Range positions) {
  for (const Part& source : from.parts_) {
    for (const Part& target : parts_) {
      const Range both = intersection(intersection(source.positions, target.positions), positions);
      for (std::size_t head = 0; head < shape_.layers * shape_.kv_heads && !both.empty(); ++head) {
        const std::size_t layer = head / shape_.kv_heads, kv_head = head % shape_.kv_heads;
        const auto read = source.cells->parts(layer, kv_head, relative_to(source.positions.begin, both));
        const auto written = target.cells->parts(layer, kv_head, relative_to(target.positions.begin, both));
        for (std::size_t i = 0; i < read.size(); ++i) std::ranges::copy(read[i], written[i].begin());
      }
    }
  }
}

const KvCache::Part& KvCache::part_of(std::size_t position) const {
  assert(position < capacity());
  return *std::ranges::find_if(parts_, [&](const Part& part) { return position < part.positions.end; });
}

std::size_t KvCache::shareable(std::size_t size) const {
  std::size_t shared = 0;
  for (const Part& part : parts_) {
    if (part.positions.end <= size && part.positions.end % kernels::block_cols == 0) shared = part.positions.end;
  }
  return shared;
}

bool KvCache::is_own(std::size_t first) const {
  return std::ranges::none_of(
      parts_, [&](const Part& part) { return part.positions.end > first && part.cells.use_count() > 1; });
}

void KvCache::make_own(std::size_t first) {
  if (is_own(first)) return;
  KvCache own(*this, part_of(first).positions.begin, capacity());
  own.copy(*this, {part_of(first).positions.begin, first});
  *this = std::move(own);
}

void KvCache::put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
                  const float* key, const float* value) {
  const Part& part = part_of(position);
  part.cells->put(kernels, layer, kv_head, position - part.positions.begin, key, value);
}

std::size_t KvCache::bytes_per_position(const Config& config, KvType type) {
  return shape_of(config, type).bytes_per_position();
}

std::size_t KvCache::bytes(const Config& config, KvType type, std::size_t capacity) {
  return kernels::block_count(capacity) * kernels::block_cols * bytes_per_position(config, type);
}

}  // namespace minimind
