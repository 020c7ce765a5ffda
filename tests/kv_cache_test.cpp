#include "runtime/kv_cache.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(KvCache, PositionsOfOneHeadLieTogetherAndHeadsApart) {
  KvCache cache(small_config(), 10);
  EXPECT_EQ(cache.key(0, 0, 1) - cache.key(0, 0, 0), 4);
  EXPECT_EQ(cache.key(0, 1, 0) - cache.key(0, 0, 0), 10 * 4);
  EXPECT_EQ(cache.key(1, 0, 0) - cache.key(0, 0, 0), 3 * 10 * 4);
  EXPECT_EQ(cache.value(1, 2, 9) - cache.value(0, 0, 0), 2 * 3 * 10 * 4 - 4);
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
  *cache.key(1, 2, 6) = 3;
  cache.rewind(2);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(*cache.key(1, 2, 6), 3);
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
