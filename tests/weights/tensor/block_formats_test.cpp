#include "weights/tensor/block_formats.h"
#include "weights/tensor/half.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/temporary_file.h"
#include "weights/io/sha256.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

constexpr DType written_types[] = {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::iq4_nl};
constexpr DType k_quants[] = {DType::q4_k, DType::q5_k, DType::q6_k};
const std::vector<DType> all_block_types = [] {
  std::vector<DType> types;
  for (const DTypeRow& row : dtype_rows) {
    if (is_block_type(row.type)) types.push_back(row.type);
  }
  return types;
}();

std::vector<Json> golden_lines(const std::string& file) {
  std::ifstream lines(MINIMIND_SOURCE_DIR "/tests/golden_quantize/" + file);
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  return all;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::byte> quantized(DType type, const std::vector<float>& values) {
  const BlockShape shape = block_shape(type);
  std::vector<std::byte> blocks(values.size() / shape.elements * shape.bytes);
  quantize(type, values.data(), values.size(), blocks.data());
  return blocks;
}

std::vector<float> dequantized(DType type, const std::vector<std::byte>& blocks) {
  const BlockShape shape = block_shape(type);
  std::vector<float> values(blocks.size() / shape.bytes * shape.elements);
  dequantize(type, blocks.data(), values.size(), values.data());
  return values;
}

// 32 values, those not given 0.
std::vector<float> block_of(std::vector<float> values) {
  values.resize(32);
  return values;
}

F16 scale_of(const std::vector<std::byte>& block) {
  F16 scale;
  std::memcpy(&scale, block.data(), sizeof scale);
  return scale;
}

// Quants of a single block of q8_0.
std::vector<int> signed_quants(const std::vector<std::byte>& block) {
  std::vector<int> quants;
  for (std::size_t i = 2; i < block.size(); ++i) quants.push_back(static_cast<std::int8_t>(block[i]));
  return quants;
}

// Quants of a single block of q4_0 or iq4_nl.
std::vector<int> nibbles(const std::vector<std::byte>& block) {
  std::vector<int> quants(32);
  for (std::size_t i = 0; i < 16; ++i) {
    quants[i] = static_cast<int>(block[2 + i] & std::byte{0x0F});
    quants[i + 16] = static_cast<int>(block[2 + i] >> 4);
  }
  return quants;
}

std::vector<float> normal_floats(std::size_t count, unsigned seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(Quantize, GoldenBlocksAreThere) {
  EXPECT_GE(golden_lines("blocks.jsonl").size(), 20u);
  EXPECT_EQ(golden_lines("stored.jsonl").size(), std::size(all_block_types));
  EXPECT_EQ(golden_lines("many.jsonl").size(), std::size(all_block_types));
}

TEST(Quantize, EveryTypeIsBitEqualToTheRecord) {
  for (const Json& golden : golden_lines("blocks.jsonl")) {
    for (const DType type : written_types) {
      EXPECT_EQ(hex(quantized(type, golden.at("values"))), golden.at(name_of(type)).get<std::string>())
          << golden.at("name") << " as " << name_of(type);
    }
  }
}

// The bytes of tests/golden_quantize/generate.py's many_bytes.
std::vector<std::byte> many_bytes(std::size_t count) {
  std::uint32_t state = 1;
  std::vector<std::byte> drawn(count);
  for (std::byte& byte : drawn) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return drawn;
}

TEST(Quantize, TheKQuantsAreByteEqualToLlamaCpps) {
  EXPECT_GE(golden_lines("k_blocks.jsonl").size(), 19u);
  for (const Json& golden : golden_lines("k_blocks.jsonl")) {
    for (const DType type : k_quants) {
      EXPECT_EQ(hex(quantized(type, golden.at("values"))), golden.at(name_of(type)).get<std::string>())
          << golden.at("name") << " as " << name_of(type);
    }
  }
}

// The values of tests/golden_quantize/generate.py's many_values.
std::vector<float> many_values(std::size_t blocks, std::size_t size) {
  const std::vector<std::byte> drawn = many_bytes(5 * blocks * size);
  std::vector<float> values(blocks * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = i / size, kind = block % 4;
    int number = -510;
    for (std::size_t k = 0; k < 4; ++k) number += std::to_integer<int>(drawn[5 * i + k]);
    if (kind == 1 && std::to_integer<int>(drawn[5 * i + 4]) >= 64) number = 0;
    if (kind == 2) number += 510;
    if (kind == 3 && i % size == 5) number *= 64;
    values[i] = std::ldexp(static_cast<float>(number), static_cast<int>(block / 4 % 40) - 37);
  }
  return values;
}

TEST(Quantize, ManyBlocksAreThoseOfTheReferences) {
  const std::vector<Json> all = golden_lines("many_quantised.jsonl");
  EXPECT_EQ(all.size(), std::size(written_types) - 1 + std::size(k_quants)) << "all except iq4_nl";
  for (const Json& golden : all) {
    const auto type = std::find_if(std::begin(all_block_types), std::end(all_block_types), [&](DType candidate) {
      return name_of(candidate) == golden.at("type").get<std::string>();
    });
    ASSERT_NE(type, std::end(all_block_types)) << golden.at("type");
    const std::size_t size = block_shape(*type).elements;
    Sha256 sha256;
    sha256.update(quantized(*type, many_values(size == 32 ? 2000 : 1000, size)));
    EXPECT_EQ(sha256.hex_digest(), golden.at("sha256").get<std::string>()) << name_of(*type);
  }
}

TEST(Quantize, ManyBlocksAreOneAfterTheOther) {
  for (const DType type : written_types) {
    std::vector<float> values;
    std::string blocks;
    for (const Json& golden : golden_lines("blocks.jsonl")) {
      for (const float value : golden.at("values")) values.push_back(value);
      blocks += golden.at(name_of(type));
    }
    EXPECT_EQ(hex(quantized(type, values)), blocks) << name_of(type);
  }
}

TEST(Dequantize, EveryTypeIsBitEqualToTheGgufPackage) {
  for (const Json& golden : golden_lines("stored.jsonl")) {
    const auto type = std::find_if(std::begin(all_block_types), std::end(all_block_types), [&](DType candidate) {
      return name_of(candidate) == golden.at("type").get<std::string>();
    });
    ASSERT_NE(type, std::end(all_block_types)) << golden.at("type");
    const std::vector<float> values = dequantized(*type, from_hex(golden.at("blocks")));
    const std::vector<std::byte> wanted = from_hex(golden.at("values"));
    ASSERT_EQ(values.size() * sizeof(float), wanted.size()) << name_of(*type);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, wanted.data() + i * sizeof bits, sizeof bits);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), bits) << name_of(*type) << " " << i << ": " << values[i];
    }
  }
}

TEST(Dequantize, EveryVectorOfTheCodeBooksIsThatOfTheGgufPackage) {
  for (const Json& golden : golden_lines("many.jsonl")) {
    const auto type = std::find_if(std::begin(all_block_types), std::end(all_block_types), [&](DType candidate) {
      return name_of(candidate) == golden.at("type").get<std::string>();
    });
    ASSERT_NE(type, std::end(all_block_types)) << golden.at("type");
    std::vector<float> values = dequantized(*type, many_bytes(1000 * block_shape(*type).bytes));
    std::replace_if(
        values.begin(), values.end(), [](float value) { return std::isnan(value); }, 0.0f);
    Sha256 sha256;
    sha256.update(std::as_bytes(std::span(values)));
    EXPECT_EQ(sha256.hex_digest(), golden.at("sha256").get<std::string>()) << name_of(*type);
  }
}

// Files may have any bytes. Infinite or NaN scales give values that are not finite, without undefined behaviour.
TEST(Dequantize, AcceptsAnyBytes) {
  std::mt19937 random(3);
  for (const DType type : all_block_types) {
    std::vector<std::byte> blocks(64 * block_shape(type).bytes);
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
    EXPECT_EQ(dequantized(type, blocks).size(), 64 * block_shape(type).elements) << name_of(type);
    std::fill(blocks.begin(), blocks.end(), std::byte{0xFF});
    if (type == DType::mxfp4 || type == DType::nvfp4) continue;  // their scales cannot be NaN
    for (const float value : dequantized(type, blocks)) ASSERT_TRUE(std::isnan(value)) << name_of(type);
  }
}

TEST(Quantize, RejectsUnsupportedTypes) {
  std::byte bytes[256];
  float values[256] = {};
  EXPECT_NE(error_of([&] { quantize(DType::q3_k, values, 256, bytes); }).find("q3_k"), std::string::npos);
  EXPECT_NE(error_of([&] { dequantize(DType::f16, bytes, 32, values); }).find("f16"), std::string::npos);
}

TEST(Quantize, AZeroBlockHasScaleZeroAndRepresentsZero) {
  for (const DType type : written_types) {
    const std::vector<std::byte> block = quantized(type, block_of({}));
    EXPECT_EQ(to_f32(scale_of(block)), 0.0f) << name_of(type);
    for (const float value : dequantized(type, block)) EXPECT_EQ(value, 0.0f) << name_of(type);
  }
}

TEST(Quantize, ValuesTooSmallForTheScaleBecomeZero) {
  for (const DType type : written_types) {
    for (const float small : {1e-9f, 1e-30f, std::numeric_limits<float>::denorm_min()}) {
      const std::vector<std::byte> block = quantized(type, block_of({small, -small / 2, small / 3}));
      for (const float value : dequantized(type, block)) EXPECT_EQ(value, 0.0f) << name_of(type) << " of " << small;
    }
  }
}

TEST(Quantize, Q8RoundsHalvesAwayFromZero) {
  const float below_half = std::nextafter(0.5f, 0.0f);
  const auto block =
      quantized(DType::q8_0, block_of({127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, below_half, -below_half}));
  ASSERT_EQ(to_f32(scale_of(block)), 1.0f);
  std::vector<int> quants = signed_quants(block);
  quants.resize(10);
  EXPECT_EQ(quants, (std::vector<int>{127, 1, 2, 3, -1, -2, -3, 0, 0, 0}));
}

// As a 127 and as a -127 that rounding took over its bound might.
TEST(Quantize, Q8NeverWritesMinus128) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<int> quants = signed_quants(quantized(DType::q8_0, normal_floats(32, seed, 0.02f)));
    EXPECT_EQ(
        *std::max_element(quants.begin(), quants.end(), [](int a, int b) { return std::abs(a) < std::abs(b); }) % 127,
        0);
  }
}

TEST(Quantize, Q4GivesTheFirstNumberOfLargestMagnitudeTheOnlyMinusEight) {
  const auto positive = quantized(DType::q4_0, block_of({4, -4, 1}));
  EXPECT_EQ(to_f32(scale_of(positive)), -0.5f);
  EXPECT_EQ(nibbles(positive)[0], 0);
  EXPECT_EQ(nibbles(positive)[1], 15) << "8 would be 16: it is held by the largest there is";
  EXPECT_EQ(nibbles(positive)[2], 6);
  const auto negative = quantized(DType::q4_0, block_of({-4, 4, 1}));
  EXPECT_EQ(to_f32(scale_of(negative)), 0.5f);
  EXPECT_EQ(nibbles(negative)[0], 0);
  EXPECT_EQ(nibbles(negative)[1], 15);
}

// Quantising errs by half a step, or by one if q4_0 must clamp 8 to 7; the scale, rounded to binary16, by 2^-11 of
// itself, which counts up to 127 or 8 times.
TEST(Quantize, RoundingErrorsAreWithinOneStep) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<float> values = normal_floats(32, seed);
    const auto q8 = quantized(DType::q8_0, values), q4 = quantized(DType::q4_0, values);
    const float step8 = to_f32(scale_of(q8)), step4 = std::fabs(to_f32(scale_of(q4)));
    const std::vector<float> held8 = dequantized(DType::q8_0, q8), held4 = dequantized(DType::q4_0, q4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(held8[i], values[i], step8 * (0.5f + 127 * 0x1p-11f)) << seed;
      EXPECT_NEAR(held4[i], values[i], step4 * (1.0f + 8 * 0x1p-11f)) << seed;
    }
  }
}

double nearest_code(double scaled) {
  double nearest = iq4_nl_codes[0];
  for (const int code : iq4_nl_codes) {
    if (std::fabs(code - scaled) < std::fabs(nearest - scaled)) nearest = code;
  }
  return nearest;
}

double squared_error(const std::vector<float>& values, double scale) {
  double error = 0;
  for (const float value : values) error += std::pow(value - scale * nearest_code(value / scale), 2);
  return error;
}

// Of scales that the largest number is 60 to 180 of, either way, in steps of half a percent.
double smallest_squared_error(const std::vector<float>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double largest = std::max(std::fabs(*low), std::fabs(*high));
  double smallest = INFINITY;
  for (double code = 60; code < 180; code *= 1.005) {
    smallest = std::min({smallest, squared_error(values, largest / code), squared_error(values, -largest / code)});
  }
  return smallest;
}

TEST(Quantize, Iq4ChoosesTheNearestCodeForItsScale) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<float> values = normal_floats(32, seed, 0.03f);
    const auto block = quantized(DType::iq4_nl, values);
    const double scale = to_f32(scale_of(block));
    const std::vector<float> held = dequantized(DType::iq4_nl, block);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // A number in the middle may go either way; twice the scaled number is rounded at 2^-11.
      const double best = std::fabs(values[i] - scale * nearest_code(values[i] / scale));
      EXPECT_LE(std::fabs(values[i] - held[i]), best + std::fabs(scale) * 0x1p-10) << seed;
    }
  }
}

// Eight tries find scales that are little worse than the best: here by 0.4 % on average and by 19 % at most.
TEST(Quantize, Iq4ComesNearTheSmallestSquaredError) {
  double sum = 0, smallest_sum = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::vector<float> values = normal_floats(32, seed, 0.03f);
    if (seed % 3 == 0) values[seed % 32] *= 6;  // an outlier
    const double error = squared_error(values, to_f32(scale_of(quantized(DType::iq4_nl, values))));
    const double smallest = smallest_squared_error(values);
    EXPECT_LE(error, 1.25 * smallest) << seed;
    sum += error;
    smallest_sum += smallest;
  }
  EXPECT_LE(sum, 1.01 * smallest_sum);
}

TEST(Quantize, Iq4RepresentsItsOwnCodesExactly) {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(0.25f * iq4_nl_codes[i % 16]);
  EXPECT_EQ(dequantized(DType::iq4_nl, quantized(DType::iq4_nl, values)), values);
}

// Its scale may have any number as the largest: 4e6 is some 60 times the largest binary16.
TEST(Quantize, Iq4AcceptsValuesUpToSixtyTimesTheLargestScale) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<float> values = normal_floats(32, seed, 1e6f);
    for (float& value : values) value = std::clamp(value, -4e6f, 4e6f);
    for (const float held : dequantized(DType::iq4_nl, quantized(DType::iq4_nl, values))) {
      ASSERT_TRUE(std::isfinite(held)) << seed;
    }
  }
}

}  // namespace
}  // namespace minimind
