#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/thread_team.h"
#include "tests/support/cases.h"
#include "tests/support/packed.h"
#include "tests/support/tables.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/half.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {
namespace {

using Clock = std::chrono::steady_clock;

// As many weights as MiniMind-3 has, which one token reads once: more than fit in the caches.
constexpr std::size_t large_rows = 26272, large_cols = 2432;

StoredTensor stored_matrix() {
  std::vector<std::byte> bytes(large_rows * large_cols * sizeof(F16));
  for (std::size_t i = 0; i < large_rows * large_cols; ++i) {
    const auto bits = static_cast<std::uint16_t>(0x3000 + 37 * i % 0x0800);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return {
      .dtype = DType::f16, .shape = {large_rows, large_cols}, .data = StoredBytes(std::move(bytes)), .file = "test"};
}

// Returns the shortest time of a product with one token per table. Tables take turns, so that other load on the machine
// affects all alike.
std::map<std::string, double> seconds_by_table(const WeightMatrix& matrix) {
  const std::vector<float> x(large_cols, 0.5f);
  std::vector<float> y(large_rows);
  std::vector<kernels::ActivationBlock> blocks(large_cols / kernels::block_cols);
  std::map<std::string, double> least;
  for (int round = 0; round < 6; ++round) {
    for (const kernels::Table* table : tables()) {
      table->quantize(x.data(), large_cols, blocks.data());
      const Activations activations{.exact = {x.data(), 1, large_cols},
                                    .rounded = {reinterpret_cast<const std::byte*>(blocks.data()), 1,
                                                large_cols / kernels::block_cols * sizeof blocks[0]}};
      const Clock::time_point start = Clock::now();
      matmul(*table, matrix, {0, kernels::panel_count(large_rows)}, activations, {y.data(), 1, large_rows});
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      const auto [entry, is_first] = least.try_emplace(table->name, seconds);
      entry->second = std::min(entry->second, seconds);
    }
  }
  return least;
}

// Memory is the limit, and AVX2 reads weights as fast as memory delivers them. SSE2 has half the width and cannot
// convert binary16.
TEST(KernelSpeed, OlderInstructionSetsDecodeAlmostAsFast) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizers' checks take most of the time";
  const StoredTensor stored = stored_matrix();
  for (const DType type : {DType::f16, DType::q8_0, DType::q4_0}) {
    const std::map<std::string, double> seconds = seconds_by_table(pack(stored, type, default_threads()));
    if (!seconds.contains("avx2")) GTEST_SKIP() << "this machine has no AVX2";
    for (const char* better : {"avx512", "avx512vnni"}) {
      if (!seconds.contains(better)) continue;
      EXPECT_LT(seconds.at("avx2"), 2 * seconds.at(better)) << better;
    }
    EXPECT_LT(seconds.at("sse2"), 8 * seconds.at("avx2"));
  }
}

}  // namespace
}  // namespace minimind
