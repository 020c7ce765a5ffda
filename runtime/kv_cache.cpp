#include "runtime/kv_cache.h"

#include <fmt/core.h>

#include <array>

#include "weights/error.h"
#include "weights/shape.h"

namespace minimind {

KvCache::KvCache(const Config& config, std::size_t capacity)
    : kv_heads_(config.num_key_value_heads), head_dim_(config.head_dim), capacity_(capacity) {
  const std::array<std::size_t, 4> shape{config.num_hidden_layers, kv_heads_, capacity, head_dim_};
  const auto count = element_count(shape);
  const auto size = byte_count(shape, DType::f32);
  if (size) {
    // calloc leaves untouched pages unused, so that a long context costs nothing until it is filled.
    keys_.reset(static_cast<float*>(std::calloc(*count, sizeof(float))));
    values_.reset(static_cast<float*>(std::calloc(*count, sizeof(float))));
  }
  if (!keys_ || !values_) {
    throw Error(
        fmt::format("a context of {} positions needs {:.1f} GB for keys and values, which cannot be had; give a "
                    "smaller --ctx-size, or to bench a smaller --depth",
                    capacity,
                    8e-9 * static_cast<double>(shape[0]) * static_cast<double>(kv_heads_) *
                        static_cast<double>(capacity) * static_cast<double>(head_dim_)));
  }
}

}  // namespace minimind
