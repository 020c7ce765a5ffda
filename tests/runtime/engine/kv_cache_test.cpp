#include "runtime/engine/filled_cells.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weights/base/error.h"

namespace minimind {
namespace {

Config small_config() {
  Config config;
  config.num_hidden_layers = 2;
  config.num_key_value_heads = 3;
  config.head_dim = 4;
  return config;
}

// A key that encodes its place: position + element / 32, exact in f16. The value is its negative.
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
float as_float(std::int8_t x) {
  return x;
}

TEST(KvCache, KeysHavePositionsAsRowsAndValuesAsColumns) {
  Config config = small_config();
  config.head_dim = 20;  // not a multiple of a panel's rows
  constexpr std::size_t capacity = 37, positions = 64;
  for (const KvType type : {KvType::f32, KvType::f16}) {
    KvCache cache(config, capacity, type);
    EXPECT_EQ(cache.type(), type);
    for (std::size_t position = 0; position < capacity; ++position) {
      put(cache, 0, 1, position, config.head_dim);
      put(cache, 1, 2, position, config.head_dim);
    }
    const auto check = [&](const auto& panels, std::size_t position, std::size_t i) {
      const float want = static_cast<float>(position) + static_cast<float>(i) / 32;
      EXPECT_EQ(as_float(panels.keys[position / 16 * 16 * 20 + i * 16 + position % 16]), want);
      EXPECT_EQ(as_float(panels.values[i / 16 * 16 * positions + position * 16 + i % 16]), -want);
    };
    for (const auto& [layer, kv_head] : {std::pair{0u, 1u}, {1u, 2u}}) {
      const KvCells::Panels panels = cache.parts()[0].cells->panels(layer, kv_head);
      for (std::size_t position = 0; position < capacity; ++position) {
        for (std::size_t i = 0; i < config.head_dim; ++i) {
          if (type == KvType::f32) check(std::get<KvPanels<float>>(panels), position, i);
          if (type == KvType::f16) check(std::get<KvPanels<F16>>(panels), position, i);
        }
      }
    }
  }
}

// A block is rounded in steps of its largest magnitude / 127, which moves each value by at most half a step and the
// rounding of the quotient. The step itself is rounded to 11 bits.
TEST(KvCache, Q8_0RoundsBlocksOf32ValuesWithOneScale) {
  constexpr std::size_t capacity = 37, positions = 64;
  constexpr double error = 0.5 + 127 * (2 * std::numeric_limits<float>::epsilon() + 0x1p-11);
  for (const std::size_t head_dim : {8u, 32u, 48u, 80u, 96u}) {
    Config config = small_config();
    config.head_dim = head_dim;
    KvCache cache(config, capacity, KvType::q8_0);
    for (std::size_t position = 0; position < capacity; ++position) put(cache, 1, 2, position, head_dim);
    const auto panels = std::get<KvPanels<std::int8_t>>(cache.parts()[0].cells->panels(1, 2));
    const std::size_t blocks = (head_dim + 31) / 32;
    for (std::size_t position = 0; position < capacity; ++position) {
      for (std::size_t i = 0; i < head_dim; ++i) {
        const std::size_t block = i / 32, width = std::min<std::size_t>(32, head_dim - 32 * block);
        const float number = static_cast<float>(position) + static_cast<float>(i) / 32;
        const float largest = static_cast<float>(position) + static_cast<float>(32 * block + width - 1) / 32;
        const auto& keys = panels.keys[position / 16 * blocks + block];
        const auto& values = panels.values[i / 16 * (positions / 32) + position / 32];
        const F16 key_scale{keys.scale[position % 16]};
        const F16 value_scale = panels.value_scales[block * positions + position];
        EXPECT_EQ(key_scale.bits, to_f16(largest / 127).bits);
        EXPECT_EQ(value_scale.bits, to_f16(largest / 127).bits);
        const float key = keys.quant[i % 32 / 4][position % 16][i % 4];
        const float value = values.quant[position % 32 / 4][i % 16][position % 4];
        const double step = to_f32(key_scale);
        EXPECT_NEAR(key * step, number, error * step) << "position " << position << ", number " << i;
        EXPECT_NEAR(value * step, -number, error * step) << "position " << position << ", number " << i;
      }
    }
  }
}

// 1e7 / 127 is over the range of f16.
TEST(KvCache, Q8_0BlockWithATooLargeValueIsNan) {
  Config config = small_config();
  config.head_dim = 40;
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e7f, -1e7f}) {
    KvCache cache(config, 5, KvType::q8_0);
    std::vector<float> key(40, 1.0f), value = key;
    key[39] = value[3] = bad;
    cache.put(kernels::choose(), 0, 0, 4, key.data(), value.data());
    const auto panels = std::get<KvPanels<std::int8_t>>(cache.parts()[0].cells->panels(0, 0));
    EXPECT_FALSE(std::isnan(to_f32(F16{panels.key_block(4, 0).scale[4]})));
    EXPECT_TRUE(std::isnan(to_f32(F16{panels.key_block(4, 1).scale[4]})));
    EXPECT_TRUE(std::isnan(to_f32(panels.value_scales_of(0)[4])));
    EXPECT_FALSE(std::isnan(to_f32(panels.value_scales_of(1)[4])));
  }
}

// All elements and scales of the first `size` positions of a kv head.
template <class Element>
std::vector<float> held(const KvPanels<Element>& panels, std::size_t size) {
  std::vector<float> elements;
  for (std::size_t position = 0; position < size; ++position) {
    for (std::size_t i = 0; i < panels.head_dim; ++i) {
      elements.push_back(as_float(*panels.key(position, i)));
      elements.push_back(as_float(*panels.value(position, i)));
      if constexpr (std::is_same_v<Element, const std::int8_t>) {
        elements.push_back(panels.key_block(position, i / 32).scale[position % 16]);
        elements.push_back(panels.value_scales_of(i / 32)[position].bits);
      }
    }
  }
  return elements;
}

// A row of a panel in two cache lines takes longer to read, and one in two pages makes the system provide one of them
// twice.
TEST(KvCache, PanelsStartAtCacheLines) {
  for (const KvType type : kv_types) {
    for (const std::size_t capacity : {1, 40, 3000}) {
      const KvCache cache(small_config(), capacity, type);
      const KvCells::Panels panels = cache.parts().front().cells->panels(0, 0);
      std::visit([](const auto& of) { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(of.keys) % 64, 0u); }, panels);
    }
  }
}

TEST(KvCache, FilledPartsRestoreTheFilledPositions) {
  Config config = small_config();
  config.head_dim = 40;
  constexpr std::size_t size = 21;
  for (const KvType type : {KvType::f32, KvType::f16, KvType::q8_0}) {
    KvCache cache(config, 37, type), copy(config, 50, type);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t kv_head = 0; kv_head < 3; ++kv_head) {
        for (std::size_t position = 0; position < size; ++position) put(cache, layer, kv_head, position, 40);
      }
    }
    const auto from = filled_cells(cache, size), to = filled_cells(copy, size);
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].size(), to[i].size());
      std::copy(from[i].begin(), from[i].end(), to[i].begin());
    }
    for (std::size_t head = 0; head < 6; ++head) {
      const auto elements_of = [&](const KvCache& of) {
        return std::visit([](const auto& panels) { return held(panels, size); },
                          of.parts()[0].cells->panels(head / 3, head % 3));
      };
      EXPECT_EQ(elements_of(copy), elements_of(cache)) << name_of(type);
    }
  }
}

TEST(KvCache, ErrorNamesTheMemoryOfAHugeContext) {
  for (const KvType type : {KvType::f32, KvType::f16, KvType::q8_0}) {
    for (const std::size_t capacity : {std::size_t{1} << 50, std::size_t{1} << 62, ~std::size_t{0}}) {
      try {
        KvCache cache(small_config(), capacity, type);
        FAIL() << capacity << " positions were allocated";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("GB"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("use a smaller context"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace minimind
