#include "runtime/kv_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "weights/error.h"
#include "weights/quote.h"
#include "weights/shape.h"

namespace minimind {
namespace {

using kernels::panel_rows;

// n, which must leave room for it, rounded up to whole panels.
std::size_t whole_panels(std::size_t n) {
  return (n + panel_rows - 1) / panel_rows * panel_rows;
}

void copy(const kernels::Table&, const float* x, std::size_t n, float* out) {
  std::copy_n(x, n, out);
}

void copy(const kernels::Table& kernels, const float* x, std::size_t n, F16* out) {
  kernels.round_to_f16(x, n, out);
}

}  // namespace

KvType parse_kv_type(const std::string& name) {
  if (name == "f32") return KvType::f32;
  if (name == "f16") return KvType::f16;
  throw UsageError(fmt::format("--kv-type is {}, wanted f32 or f16", quoted(name)));
}

std::size_t KvCache::bytes_per_position(const Config& config, KvType type) {
  const std::size_t bytes = type == KvType::f32 ? sizeof(float) : sizeof(F16);
  return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * bytes;
}

KvCache::KvCache(const Config& config, std::size_t capacity, KvType type)
    : type_(type),
      layers_(config.num_hidden_layers),
      kv_heads_(config.num_key_value_heads),
      head_dim_(config.head_dim),
      capacity_(capacity),
      positions_(whole_panels(capacity)),
      value_rows_(whole_panels(head_dim_)) {
  const bool taken = capacity <= positions_ && (type == KvType::f32 ? take_memory<float>() : take_memory<F16>());
  if (taken) return;
  throw Error(fmt::format(
      "a context of {} positions needs {:.1f} GB for keys and values, which cannot be had; give a smaller --ctx-size, "
      "or "
      "to bench a smaller --depth",
      capacity, 1e-9 * static_cast<double>(bytes_per_position(config, type)) * static_cast<double>(capacity)));
}

template <class Element>
bool KvCache::take_memory() {
  const auto keys = element_count(std::array{layers_, kv_heads_, positions_, head_dim_});
  const auto values = element_count(std::array{layers_, kv_heads_, positions_, value_rows_});
  if (!keys || !values) return false;
  Storage<Element>& storage = storage_.emplace<Storage<Element>>();
  // calloc leaves untouched pages unused, so that a long context costs nothing until it is filled.
  storage.keys.reset(static_cast<Element*>(std::calloc(*keys, sizeof(Element))));
  storage.values.reset(static_cast<Element*>(std::calloc(*values, sizeof(Element))));
  return storage.keys && storage.values;
}

template <class Element>
KvPanels<Element> KvCache::panels_in(const Storage<Element>& storage, std::size_t head) const {
  return {.keys = storage.keys.get() + head * positions_ * head_dim_,
          .keys_panel_stride = panel_rows * head_dim_,
          .values = storage.values.get() + head * positions_ * value_rows_,
          .values_panel_stride = panel_rows * positions_};
}

std::variant<KvPanels<float>, KvPanels<F16>> KvCache::panels(std::size_t layer, std::size_t kv_head) const {
  using Panels = std::variant<KvPanels<float>, KvPanels<F16>>;
  return std::visit([&](const auto& storage) -> Panels { return panels_in(storage, layer * kv_heads_ + kv_head); },
                    storage_);
}

void KvCache::put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
                  const float* key, const float* value) {
  std::visit(
      [&]<class Element>(Storage<Element>& storage) {
        const std::size_t head = layer * kv_heads_ + kv_head, panel = position / panel_rows;
        Element* const keys =
            storage.keys.get() + head * positions_ * head_dim_ + panel * panel_rows * head_dim_ + position % panel_rows;
        Element* const values = storage.values.get() + head * positions_ * value_rows_ + position * panel_rows;
        for (std::size_t first = 0; first < head_dim_; first += panel_rows) {
          const std::size_t count = std::min(panel_rows, head_dim_ - first);
          Element numbers[panel_rows];
          copy(kernels, key + first, count, numbers);
          for (std::size_t i = 0; i < count; ++i) keys[(first + i) * panel_rows] = numbers[i];
          copy(kernels, value + first, count, values + first * positions_);
        }
      },
      storage_);
}

std::vector<std::span<std::byte>> KvCache::filled_parts() {
  std::vector<std::span<std::byte>> parts;
  const auto add = [&]<class Element>(Element* begin, std::size_t count) {
    parts.push_back(std::as_writable_bytes(std::span(begin, count)));
  };
  std::visit(
      [&](auto& storage) {
        for (std::size_t head = 0; head < layers_ * kv_heads_; ++head) {
          add(storage.keys.get() + head * positions_ * head_dim_, whole_panels(size_) * head_dim_);
          for (std::size_t row = 0; row < value_rows_; row += panel_rows) {
            add(storage.values.get() + (head * value_rows_ + row) * positions_, size_ * panel_rows);
          }
        }
      },
      storage_);
  return parts;
}

}  // namespace minimind
