#include "runtime/kv_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weights/error.h"

namespace minimind {
namespace {

Config small_config() {
  Config config;
  config.num_hidden_layers = 2;
  config.num_key_value_heads = 3;
  config.head_dim = 4;
  return config;
}

// A key that tells where it is: position + component / 32, exact in f16, and its negative as the value.
void put(KvCache& cache, std::size_t layer, std::size_t kv_head, std::size_t position, std::size_t head_dim) {
  std::vector<float> key(head_dim), value(head_dim);
  for (std::size_t i = 0; i < head_dim; ++i) {
    key[i] = static_cast<float>(position) + static_cast<float>(i) / 32;
    value[i] = -key[i];
  }
  cache.put(kernels::choose(), layer, kv_head, position, key.data(), value.data());
}

float as_float(float x) {
  return x;
}
float as_float(F16 x) {
  return to_f32(x);
}

TEST(KvCache, HoldsKeysWithPositionsAsRowsAndValuesWithPositionsAsColumns) {
  Config config = small_config();
  config.head_dim = 20;  // no whole number of panels
  constexpr std::size_t capacity = 37;
  for (const KvType type : {KvType::f32, KvType::f16}) {
    KvCache cache(config, capacity, type);
    EXPECT_EQ(cache.type(), type);
    for (std::size_t position = 0; position < capacity; ++position) {
      put(cache, 0, 1, position, config.head_dim);
      put(cache, 1, 2, position, config.head_dim);
    }
    const auto check = [&](const auto& panels, std::size_t position, std::size_t i) {
      const float want = static_cast<float>(position) + static_cast<float>(i) / 32;
      EXPECT_EQ(as_float(panels.keys[position / 16 * panels.keys_panel_stride + i * 16 + position % 16]), want);
      EXPECT_EQ(as_float(panels.values[i / 16 * panels.values_panel_stride + position * 16 + i % 16]), -want);
    };
    for (const auto& [layer, kv_head] : {std::pair{0u, 1u}, {1u, 2u}}) {
      for (std::size_t position = 0; position < capacity; ++position) {
        for (std::size_t i = 0; i < config.head_dim; ++i) {
          std::visit([&](const auto& panels) { check(panels, position, i); }, cache.panels(layer, kv_head));
        }
      }
    }
  }
}

TEST(KvCache, ParsesTheNamesOfItsTypes) {
  for (const KvType type : {KvType::f32, KvType::f16}) EXPECT_EQ(parse_kv_type(std::string(name_of(type))), type);
  EXPECT_THROW(parse_kv_type("q8_0"), UsageError);
}

TEST(KvCache, AdvancesWithinItsCapacity) {
  KvCache cache(small_config(), 10);
  cache.advance(7);
  EXPECT_EQ(cache.size(), 7u);
  EXPECT_EQ(cache.capacity(), 10u);
}

TEST(KvCache, RewindsToWhatItHeld) {
  KvCache cache(small_config(), 10);
  cache.advance(7);
  put(cache, 1, 2, 1, 4);
  cache.rewind(2);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(std::get<KvPanels<float>>(cache.panels(1, 2)).keys[16 + 1], 1 + 1.0f / 32);
}

TEST(KvCache, SaysHowMuchMemoryAnImpossibleContextWouldTake) {
  for (const std::size_t capacity : {std::size_t{1} << 50, std::size_t{1} << 62}) {
    try {
      KvCache cache(small_config(), capacity);
      FAIL() << capacity << " positions were had";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("GB"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("--ctx-size"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace minimind
