#include "tools/bench/limits.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/tables.h"

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
    EXPECT_GT(measure_reading(*kernels::runnable().tables[0], buffer, threads), 1e7);
    EXPECT_GT(measure_multiply_add(*kernels::runnable().tables[0], threads), 1e7);
    EXPECT_GT(measure_multiply_add_int8(*kernels::runnable().tables[0], threads), 1e7);
    for (const kernels::Table& table : bf16_tables()) EXPECT_GT(measure_multiply_add_bf16(*table.bf16, threads), 1e7);
  }
}

}  // namespace
}  // namespace minimind
