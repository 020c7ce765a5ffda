#include "tools/bench/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/load_model.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

TEST(Limits, EveryTableReadsEveryValue) {
  for (const kernels::Table* table : tables()) {
    for (const std::size_t n : {0u, 1u, 5u, 191u, 192u, 193u, 1000u}) {
      std::vector<float> values(n);
      for (std::size_t j = 0; j < n; ++j) values[j] = static_cast<float>(j);  // sums of integers are exact
      EXPECT_EQ(table->read(values.data(), n), static_cast<float>(n * (n - (n > 0)) / 2)) << table->name << " " << n;
    }
  }
}

TEST(Limits, MultiplyAddDoesTheStatedOperations) {
  for (const kernels::Table* table : tables()) {
    // With a factor of 1 each operation adds 1.
    const float begun = table->multiply_add(1, 1, 0);
    EXPECT_EQ(table->multiply_add(1, 1, 7) - begun, static_cast<float>(7 * table->multiply_adds_per_round))
        << table->name;
    EXPECT_EQ(table->multiply_add(2, 0, 3), 8 * begun) << table->name;
  }
}

TEST(Limits, MultiplyAddInt8DoesTheStatedOperations) {
  for (const kernels::Table* table : tables()) {
    const auto products = static_cast<float>(3 * table->blocks->multiply_adds_per_round);
    for (const int factor : {0, 1, 2, -127, 127}) {
      EXPECT_EQ(table->blocks->multiply_add(static_cast<std::int8_t>(factor), 3), static_cast<float>(factor) * products)
          << table->name;
    }
  }
}

TEST(Limits, AreMeasuredWithSeveralThreads) {
  const std::vector<float> buffer(1 << 18, 1.0f);
  for (const std::size_t threads : {1u, 2u, 3u}) {
    EXPECT_GT(measure_reading(kernels::runnable().front(), buffer, threads), 1e7);
    EXPECT_GT(measure_multiply_add(kernels::runnable().front(), threads), 1e7);
    EXPECT_GT(measure_multiply_add_int8(kernels::runnable().front(), threads), 1e7);
    for (const kernels::Table& table : bf16_tables()) EXPECT_GT(measure_multiply_add_bf16(*table.bf16, threads), 1e7);
  }
}

// The expected bytes of a model's weights, computed from its config.
struct Expected {
  explicit Expected(const Config& config) : c(config) {}

  // Panels have multiples of 16 rows.
  static std::size_t matrix(std::size_t rows, std::size_t cols) { return (rows + 15) / 16 * 16 * cols; }

  std::size_t network() const {
    return 2 * matrix(c.intermediate_size, c.hidden_size) + matrix(c.hidden_size, c.intermediate_size);
  }
  std::size_t layer(std::size_t networks) const {
    const std::size_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
    const std::size_t norms = 2 * c.hidden_size + (has_q_norm(c.family) ? 2 * c.head_dim : 0);
    const std::size_t router = c.num_experts > 0 ? matrix(c.num_experts, c.hidden_size) : 0;
    return norms + matrix(q, c.hidden_size) + 2 * matrix(kv, c.hidden_size) + matrix(c.hidden_size, q) + router +
           networks * network();
  }
  // All layers, the last norm and the output.
  std::size_t numbers(std::size_t networks) const {
    return c.num_hidden_layers * layer(networks) + c.hidden_size + matrix(c.vocab_size, c.hidden_size);
  }

  const Config& c;
};

Model load(const std::string& golden) {
  return load_model(open_checkpoint(load_golden(golden).model_path, {}), DType::f32, 1);
}

TEST(BenchWork, ATiedDenseModelReadsAllWeightsPerToken) {
  const Model model = load("v3-dense");
  ASSERT_FALSE(model.lm_head);
  EXPECT_EQ(weight_bytes(model), 4 * Expected(model.config).numbers(1));
  EXPECT_EQ(weight_bytes_per_token(model), weight_bytes(model));
}

TEST(BenchWork, ATokenReadsOneRowOfAnUntiedEmbedding) {
  const Model model = load("v3-untied");
  const Config& config = model.config;
  const std::size_t numbers = Expected(config).numbers(1);
  EXPECT_EQ(weight_bytes(model), 4 * (numbers + Expected::matrix(config.vocab_size, config.hidden_size)));
  EXPECT_EQ(weight_bytes_per_token(model),
            4 * numbers + 4 * Expected::matrix(config.vocab_size, config.hidden_size) / config.vocab_size);
}

TEST(BenchWork, ATokenReadsOnlyItsExperts) {
  const Model model = load("v2-moe");
  const Config& config = model.config;
  ASSERT_GT(config.num_experts, config.num_experts_per_tok);
  ASSERT_GT(config.n_shared_experts, 0u);
  EXPECT_EQ(weight_bytes(model), 4 * Expected(config).numbers(config.num_experts + config.n_shared_experts));
  EXPECT_EQ(weight_bytes_per_token(model),
            4 * Expected(config).numbers(config.num_experts_per_tok + config.n_shared_experts));
}

TEST(BenchWork, DecodeReadsThePositionsBeforeIt) {
  Config config;
  config.num_hidden_layers = 2;
  config.num_key_value_heads = 3;
  config.head_dim = 16;
  const double position = 2 * 2 * 3 * 16 * sizeof(float);
  EXPECT_EQ(KvCache::bytes_per_position(config, KvType::f32), position);
  EXPECT_EQ(KvCache::bytes_per_position(config, KvType::f16), position / 2);
  // A row of a block of keys, a column of a panel of values, and a scale of the values.
  EXPECT_EQ(KvCache::bytes_per_position(config, KvType::q8_0), 2 * 3 * (34 + 16 + 2));
  config.head_dim = 80;
  EXPECT_EQ(KvCache::bytes_per_position(config, KvType::q8_0), 2 * 3 * (3 * 34 + 5 * 16 + 3 * 2));
  config.head_dim = 4;  // values fill whole panels of 16
  EXPECT_EQ(KvCache::bytes_per_position(config, KvType::f16), 2 * 3 * (4 + 16) * 2);
  config.head_dim = 16;
  EXPECT_EQ(cache_bytes_per_token(config, KvType::f32, 0, 1), 2 * position);  // read one, write one
  EXPECT_EQ(cache_bytes_per_token(config, KvType::f32, 100, 3), (101 + 102 + 103) / 3.0 * position + position);
}

TEST(BenchWork, BlockTypesAreMultipliedAsInt8) {
  for (const char* golden : {"v3-dense", "v2-moe"}) {
    const Checkpoint checkpoint = open_checkpoint(load_golden(golden).model_path, {});
    EXPECT_FALSE(multiplies_int8(load_model(checkpoint, std::nullopt, 1))) << golden;
    EXPECT_FALSE(multiplies_int8(load_model(checkpoint, DType::f16, 1))) << golden;
    EXPECT_TRUE(multiplies_int8(load_model(checkpoint, DType::q8_0, 1))) << golden;
    EXPECT_TRUE(multiplies_int8(load_model(checkpoint, DType::iq4_nl, 1))) << golden;
  }
}

TEST(BenchWork, APromptUsesTheLastLayerForTheLastToken) {
  const Model model = load("v3-dense");
  const Config& c = model.config;
  const double q = static_cast<double>(c.num_attention_heads * c.head_dim);
  const double kv = static_cast<double>(c.num_key_value_heads * c.head_dim);
  const double d = static_cast<double>(c.hidden_size), ffn = static_cast<double>(c.intermediate_size);
  const double keys_and_values = 2 * d * 2 * kv, rest = 2 * d * (2 * q + 3 * ffn);
  const double output = 2 * d * static_cast<double>(c.vocab_size);
  const double attention = 4 * q * (1 + 2 + 3);  // q k and p v, each 2 per element, for 1 + 2 + 3 positions
  const double last = 3 * keys_and_values + rest + 4 * q * 3;
  const double others = static_cast<double>(c.num_hidden_layers - 1) * (3 * (keys_and_values + rest) + attention);
  EXPECT_DOUBLE_EQ(prompt_flops(model, 3), others + last + output);
}

}  // namespace
}  // namespace minimind
