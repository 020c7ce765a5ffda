#include "runtime/kv_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "weights/error.h"
#include "weights/quote.h"
#include "weights/shape.h"

namespace minimind {
namespace {

using kernels::block_cols;
using kernels::panel_count;
using kernels::panel_rows;

std::size_t scale_blocks(std::size_t head_dim) {
  return (head_dim + block_cols - 1) / block_cols;
}

// Up to 32 numbers as they are held; returns their scale.
float round_to(const kernels::Table&, const float* x, std::size_t n, float* out) {
  std::copy_n(x, n, out);
  return 1;
}

float round_to(const kernels::Table& kernels, const float* x, std::size_t n, F16* out) {
  kernels.round_to_f16(x, n, out);
  return 1;
}

float round_to(const kernels::Table& kernels, const float* x, std::size_t n, std::int8_t* out) {
  float padded[block_cols] = {};
  std::copy_n(x, n, padded);
  kernels::ActivationBlock block;
  kernels.quantize(padded, block_cols, &block);
  std::copy_n(block.quant, n, out);
  return block.scale;
}

template <class Element>
void put_in(const kernels::Table& kernels, const KvPanels<Element>& panels, std::size_t position, const float* key,
            const float* value) {
  for (std::size_t first = 0; first < panels.head_dim; first += block_cols) {
    const std::size_t count = std::min(block_cols, panels.head_dim - first), block = first / panels.block_cols();
    Element numbers[block_cols];
    const float key_scale = round_to(kernels, key + first, count, numbers);
    Element* const keys = panels.key(position, first);
    for (std::size_t i = 0; i < count; ++i) keys[i * panel_rows] = numbers[i];
    const float value_scale = round_to(kernels, value + first, count, numbers);
    for (std::size_t i = 0; i < count; i += panel_rows) {
      std::copy_n(numbers + i, std::min(panel_rows, count - i), panels.value(position, first + i));
    }
    if constexpr (KvPanels<Element>::has_scales) {
      panels.key_scales_of(block)[position] = key_scale;
      panels.value_scales_of(block)[position] = value_scale;
    }
  }
}

// What `size` positions take.
template <class Element>
void add_filled_parts(const KvPanels<Element>& panels, std::size_t size, std::vector<std::span<std::byte>>& parts) {
  const auto add = [&](auto* begin, std::size_t count) {
    parts.push_back(std::as_writable_bytes(std::span(begin, count)));
  };
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    add(panels.keys_of(block), panel_count(size) * panels.keys_panel_stride(block));
  }
  for (std::size_t i = 0; i < panels.head_dim; i += panel_rows) add(panels.value(0, i), size * panel_rows);
  if constexpr (KvPanels<Element>::has_scales) {
    for (std::size_t block = 0; block < panels.blocks(); ++block) add(panels.key_scales_of(block), size);
    for (std::size_t block = 0; block < panels.blocks(); ++block) add(panels.value_scales_of(block), size);
  }
}

}  // namespace

KvType parse_kv_type(const std::string& name) {
  if (name == "f32") return KvType::f32;
  if (name == "f16") return KvType::f16;
  if (name == "q8_0") return KvType::q8_0;
  throw UsageError(fmt::format("--kv-type is {}, wanted f32, f16 or q8_0", quoted(name)));
}

std::size_t KvCache::bytes_per_position(const Config& config, KvType type) {
  std::size_t of_a_head = config.head_dim * sizeof(float);
  if (type == KvType::f16) of_a_head = config.head_dim * sizeof(F16);
  if (type == KvType::q8_0) of_a_head = config.head_dim + scale_blocks(config.head_dim) * sizeof(float);
  return 2 * config.num_hidden_layers * config.num_key_value_heads * of_a_head;
}

KvCache::KvCache(const Config& config, std::size_t capacity, KvType type)
    : type_(type),
      layers_(config.num_hidden_layers),
      kv_heads_(config.num_key_value_heads),
      head_dim_(config.head_dim),
      capacity_(capacity),
      positions_(panel_count(capacity) * panel_rows),
      value_rows_(panel_count(head_dim_) * panel_rows) {
  if (capacity <= positions_ && take_memory()) return;
  throw Error(fmt::format(
      "a context of {} positions needs {:.1f} GB for keys and values, which cannot be had; give a smaller --ctx-size, "
      "or to bench a smaller --depth",
      capacity, 1e-9 * static_cast<double>(bytes_per_position(config, type)) * static_cast<double>(capacity)));
}

bool KvCache::take_memory() {
  switch (type_) {
    case KvType::f32:
      return take_memory_as<float>();
    case KvType::f16:
      return take_memory_as<F16>();
    case KvType::q8_0:
      return take_memory_as<std::int8_t>();
  }
  return false;
}

template <class Element>
bool KvCache::take_memory_as() {
  const auto keys = element_count(std::array{layers_, kv_heads_, positions_, head_dim_});
  const auto values = element_count(std::array{layers_, kv_heads_, positions_, value_rows_});
  if (!keys || !values) return false;
  Storage<Element>& storage = storage_.emplace<Storage<Element>>();
  // calloc leaves untouched pages unused, so that a long context costs nothing until it is filled.
  const auto take = []<class Number>(std::unique_ptr<Number, Free>& numbers, std::size_t count) {
    numbers.reset(static_cast<Number*>(std::calloc(count, sizeof(Number))));
    return numbers != nullptr;
  };
  if (!take(storage.keys, *keys) || !take(storage.values, *values)) return false;
  if constexpr (!KvPanels<Element>::has_scales) return true;
  const std::size_t scales = layers_ * kv_heads_ * positions_ * scale_blocks(head_dim_);  // fewer than keys
  return take(storage.key_scales, scales) && take(storage.value_scales, scales);
}

template <class Element>
KvPanels<Element> KvCache::panels_in(const Storage<Element>& storage, std::size_t head) const {
  KvPanels<Element> panels{.keys = storage.keys.get() + head * positions_ * head_dim_,
                           .values = storage.values.get() + head * positions_ * value_rows_,
                           .key_scales = nullptr,
                           .value_scales = nullptr,
                           .head_dim = head_dim_,
                           .positions = positions_};
  if constexpr (KvPanels<Element>::has_scales) {
    panels.key_scales = storage.key_scales.get() + head * positions_ * panels.blocks();
    panels.value_scales = storage.value_scales.get() + head * positions_ * panels.blocks();
  }
  return panels;
}

KvCache::Panels KvCache::panels(std::size_t layer, std::size_t kv_head) const {
  return std::visit(
      [&]<class Element>(const Storage<Element>& storage) -> Panels {
        return KvPanels<const Element>(panels_in(storage, layer * kv_heads_ + kv_head));
      },
      storage_);
}

void KvCache::put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
                  const float* key, const float* value) {
  std::visit(
      [&](const auto& storage) {
        put_in(kernels, panels_in(storage, layer * kv_heads_ + kv_head), position, key, value);
      },
      storage_);
}

std::vector<std::span<std::byte>> KvCache::filled_parts() {
  std::vector<std::span<std::byte>> parts;
  std::visit(
      [&](const auto& storage) {
        for (std::size_t head = 0; head < layers_ * kv_heads_; ++head) {
          add_filled_parts(panels_in(storage, head), size_, parts);
        }
      },
      storage_);
  return parts;
}

}  // namespace minimind
