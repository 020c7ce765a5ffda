#include "weights/quantize.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {
namespace {

using Json = nlohmann::json;

struct Block {
  float values[quant_block_size];
};

Block block_of(const std::vector<float>& values) {
  Block block{};
  std::copy(values.begin(), values.end(), block.values);
  return block;
}

std::string scale_hex(F16 scale) {
  return fmt::format("{:02x}{:02x}", scale.bits & 0xFF, scale.bits >> 8);
}

std::string hex(const Q8_0& block) {
  std::string text = scale_hex(block.scale);
  for (const std::int8_t quant : block.quant) text += fmt::format("{:02x}", static_cast<std::uint8_t>(quant));
  return text;
}

std::string hex(const Q4_0& block) {
  std::string text = scale_hex(block.scale);
  for (std::size_t i = 0; i < quant_block_size / 2; ++i) {
    text += fmt::format("{:02x}", block.quant[i] | block.quant[i + quant_block_size / 2] << 4);
  }
  return text;
}

// The blocks of tests/golden_quantize/generate.py, quantised by the gguf package.
struct GoldenBlock {
  std::string name;
  Block block;
  std::string q8_0, q4_0;
};

std::vector<GoldenBlock> golden_blocks() {
  std::ifstream file(MINIMIND_SOURCE_DIR "/tests/golden_quantize/blocks.jsonl");
  std::vector<GoldenBlock> blocks;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    blocks.push_back(
        {json.at("name"), block_of(json.at("values").get<std::vector<float>>()), json.at("q8_0"), json.at("q4_0")});
  }
  return blocks;
}

TEST(Quantize, GoldenBlocksAreThere) {
  EXPECT_GE(golden_blocks().size(), 20u);
}

TEST(Quantize, Q8IsBitEqualToTheGgufPackage) {
  for (const GoldenBlock& golden : golden_blocks()) {
    EXPECT_EQ(hex(quantize_q8_0(golden.block.values)), golden.q8_0) << golden.name;
  }
}

TEST(Quantize, Q4IsBitEqualToTheGgufPackage) {
  for (const GoldenBlock& golden : golden_blocks()) {
    EXPECT_EQ(hex(quantize_q4_0(golden.block.values)), golden.q4_0) << golden.name;
  }
}

TEST(Quantize, AZeroBlockHasScaleZeroAndStandsForZero) {
  const Block zero{};
  const Q8_0 q8 = quantize_q8_0(zero.values);
  const Q4_0 q4 = quantize_q4_0(zero.values);
  EXPECT_EQ(to_f32(q8.scale), 0.0f);
  EXPECT_EQ(to_f32(q4.scale), 0.0f);
  for (const std::int8_t quant : q8.quant) EXPECT_EQ(quant, 0);
  for (const std::uint8_t quant : q4.quant) EXPECT_EQ(quant, 8);
}

TEST(Quantize, Q8RoundsHalvesAwayFromZero) {
  const Q8_0 block = quantize_q8_0(block_of({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f}).values);
  ASSERT_EQ(to_f32(block.scale), 1.0f);
  const std::vector<int> quants(block.quant, block.quant + 8);
  EXPECT_EQ(quants, (std::vector<int>{127, 1, 2, 3, -1, -2, -3, 0}));
}

TEST(Quantize, Q4GivesTheFirstNumberOfLargestMagnitudeTheOnlyMinusEight) {
  const Q4_0 positive = quantize_q4_0(block_of({4, -4, 1}).values);
  EXPECT_EQ(to_f32(positive.scale), -0.5f);
  EXPECT_EQ(positive.quant[0], 0);
  EXPECT_EQ(positive.quant[1], 15) << "8 would be 16: it is held by the largest there is";
  EXPECT_EQ(positive.quant[2], 6);
  const Q4_0 negative = quantize_q4_0(block_of({-4, 4, 1}).values);
  EXPECT_EQ(to_f32(negative.scale), 0.5f);
  EXPECT_EQ(negative.quant[0], 0);
  EXPECT_EQ(negative.quant[1], 15);
}

// Quantising errs by half a step, or by one where q4_0 must clamp 8 to 7; the scale, rounded to binary16, by 2^-11 of
// itself, which counts up to 127 or 8 times.
TEST(Quantize, WhatIsHeldIsWithinOneStepOfWhatWasGiven) {
  for (const GoldenBlock& golden : golden_blocks()) {
    if (!golden.name.starts_with("normal")) continue;
    const Q8_0 q8 = quantize_q8_0(golden.block.values);
    const Q4_0 q4 = quantize_q4_0(golden.block.values);
    const float step8 = to_f32(q8.scale), step4 = to_f32(q4.scale);
    for (std::size_t i = 0; i < quant_block_size; ++i) {
      const float value = golden.block.values[i];
      EXPECT_NEAR(step8 * static_cast<float>(q8.quant[i]), value, step8 * (0.5f + 127 * 0x1p-11f)) << golden.name;
      EXPECT_NEAR(step4 * static_cast<float>(q4.quant[i] - 8), value, std::fabs(step4) * (1.0f + 8 * 0x1p-11f))
          << golden.name;
    }
  }
}

// AVX2's int8 product without VNNI relies on it: see runtime/kernels.
TEST(Quantize, Q8NeverUsesMinus128) {
  for (const GoldenBlock& golden : golden_blocks()) {
    const Q8_0 block = quantize_q8_0(golden.block.values);
    EXPECT_GE(*std::min_element(block.quant, block.quant + quant_block_size), -127) << golden.name;
  }
}

}  // namespace
}  // namespace minimind
