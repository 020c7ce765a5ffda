#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/gguf/reader.h"
#include "weights/tensor/shape.h"

// What tests/golden_gguf/write.py wrote with the gguf package.
namespace minimind {
namespace {

using namespace std::string_literals;

GgufFile read_golden(const std::string& name) {
  return read_gguf(InputFile::open(MINIMIND_SOURCE_DIR "/tests/golden_gguf/" + name));
}

template <typename T>
T value(const GgufFile& file, const std::string& key, GgufType type) {
  const GgufValue* found = file.metadata.find(key);
  if (!found) throw std::runtime_error(key + " is not there");
  EXPECT_EQ(found->type, type) << key;
  return std::get<T>(found->data);
}

TEST(GoldenGguf, EveryTypeOfNumberIsRead) {
  const GgufFile file = read_golden("metadata.gguf");
  EXPECT_EQ(file.version, 3u);
  EXPECT_EQ(value<std::uint64_t>(file, "test.u8", GgufType::u8), UINT8_MAX);
  EXPECT_EQ(value<std::int64_t>(file, "test.i8", GgufType::i8), INT8_MAX);
  EXPECT_EQ(value<std::uint64_t>(file, "test.u16", GgufType::u16), UINT16_MAX);
  EXPECT_EQ(value<std::int64_t>(file, "test.i16", GgufType::i16), INT16_MAX);
  EXPECT_EQ(value<std::uint64_t>(file, "test.u32", GgufType::u32), UINT32_MAX);
  EXPECT_EQ(value<std::int64_t>(file, "test.i32", GgufType::i32), INT32_MAX);
  EXPECT_EQ(value<std::uint64_t>(file, "test.u64", GgufType::u64), UINT64_MAX);
  EXPECT_EQ(value<std::int64_t>(file, "test.i64", GgufType::i64), INT64_MAX);
  EXPECT_EQ(value<double>(file, "test.f32", GgufType::f32), double{1e-6f});
  EXPECT_EQ(value<double>(file, "test.f64", GgufType::f64), 0.1);
}

TEST(GoldenGguf, EveryTypeOfArrayIsRead) {
  using Unsigned = GgufNumbers<std::uint64_t>;
  using Signed = GgufNumbers<std::int64_t>;
  using Unsigneds = std::vector<std::uint64_t>;
  using Signeds = std::vector<std::int64_t>;
  const GgufFile file = read_golden("metadata.gguf");
  EXPECT_EQ(value<Unsigned>(file, "test.u8s", GgufType::u8), (Unsigneds{0, 1, UINT8_MAX}));
  EXPECT_EQ(value<Signed>(file, "test.i8s", GgufType::i8), (Signeds{INT8_MIN, 1, INT8_MAX}));
  EXPECT_EQ(value<Unsigned>(file, "test.u16s", GgufType::u16), (Unsigneds{0, 1, UINT16_MAX}));
  EXPECT_EQ(value<Signed>(file, "test.i16s", GgufType::i16), (Signeds{INT16_MIN, 1, INT16_MAX}));
  EXPECT_EQ(value<Unsigned>(file, "test.u32s", GgufType::u32), (Unsigneds{0, 1, UINT32_MAX}));
  EXPECT_EQ(value<Signed>(file, "test.i32s", GgufType::i32), (Signeds{INT32_MIN, 1, INT32_MAX}));
  EXPECT_EQ(value<Unsigned>(file, "test.u64s", GgufType::u64), (Unsigneds{0, 1, UINT64_MAX}));
  EXPECT_EQ(value<Signed>(file, "test.i64s", GgufType::i64), (Signeds{INT64_MIN, 1, INT64_MAX}));
  EXPECT_EQ(value<GgufNumbers<double>>(file, "test.f32s", GgufType::f32),
            (std::vector<double>{0.5, -0.0, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(value<GgufNumbers<double>>(file, "test.f64s", GgufType::f64), (std::vector<double>{0.1, -2.5}));
}

TEST(GoldenGguf, TextAndBooleansAreRead) {
  using Texts = std::vector<std::string>;
  const GgufFile file = read_golden("metadata.gguf");
  EXPECT_TRUE(value<bool>(file, "test.yes", GgufType::boolean));
  EXPECT_FALSE(value<bool>(file, "test.no", GgufType::boolean));
  EXPECT_EQ(value<std::vector<bool>>(file, "test.bools", GgufType::boolean), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(value<std::string>(file, "general.architecture", GgufType::string), "llama");
  EXPECT_EQ(value<std::string>(file, "test.string", GgufType::string), "静夜思\n");
  EXPECT_EQ(value<GgufTexts>(file, "test.strings", GgufType::string), (Texts{"a", "", "bc"}));
  EXPECT_EQ(value<GgufTexts>(file, "test.bytes_that_are_no_text", GgufType::string), (Texts{"\xff\0"s, "\n"}));
  EXPECT_EQ(file.metadata.entries().front().first, "general.architecture");
  EXPECT_EQ(file.metadata.entries().back().first, "test.bytes_that_are_no_text");
  EXPECT_EQ(file.metadata.find("test"), nullptr);
}

TEST(GoldenGguf, ShapesAreOutermostFirstAndDataWithoutPadding) {
  const GgufFile file = read_golden("metadata.gguf");
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors.at("one").shape, (Shape{5}));
  EXPECT_EQ(file.tensors.at("two").shape, (Shape{2, 3}));
  EXPECT_EQ(file.tensors.at("three").shape, (Shape{2, 3, 4}));
  EXPECT_EQ(file.tensors.at("four").shape, (Shape{1, 4, 3, 2}));
  const StoredTensor& two = file.tensors.at("two");
  ASSERT_EQ(two.data.size(), 6 * sizeof(float));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(as_string(two.data.part(i * sizeof(float), sizeof(float))), little_endian(static_cast<float>(i)));
  }
  ASSERT_NE(two.data.file(), nullptr);
  EXPECT_EQ(two.file, two.data.file()->path());
}

TEST(GoldenGguf, EveryTypeOfTensorHasItsSize) {
  const std::pair<const char*, DType> types[] = {
      {"F32", DType::f32},         {"F16", DType::f16},         {"BF16", DType::bf16},   {"F64", DType::f64},
      {"I8", DType::i8},           {"I16", DType::i16},         {"I32", DType::i32},     {"I64", DType::i64},
      {"Q8_0", DType::q8_0},       {"Q4_0", DType::q4_0},       {"Q4_1", DType::q4_1},   {"Q5_0", DType::q5_0},
      {"Q5_1", DType::q5_1},       {"Q4_K", DType::q4_k},       {"Q5_K", DType::q5_k},   {"Q6_K", DType::q6_k},
      {"IQ4_NL", DType::iq4_nl},   {"Q2_K", DType::q2_k},       {"Q3_K", DType::q3_k},   {"IQ4_XS", DType::iq4_xs},
      {"IQ3_S", DType::iq3_s},     {"IQ3_XXS", DType::iq3_xxs}, {"IQ2_S", DType::iq2_s}, {"IQ2_XS", DType::iq2_xs},
      {"IQ2_XXS", DType::iq2_xxs}, {"IQ1_M", DType::iq1_m},     {"IQ1_S", DType::iq1_s}, {"TQ1_0", DType::tq1_0},
      {"TQ2_0", DType::tq2_0},     {"MXFP4", DType::mxfp4},     {"NVFP4", DType::nvfp4}};
  const GgufFile file = read_golden("types.gguf");
  ASSERT_EQ(file.tensors.size(), std::size(types));
  for (const auto& [name, dtype] : types) {
    const StoredTensor& tensor = file.tensors.at(name);
    EXPECT_EQ(tensor.dtype, dtype) << name;
    EXPECT_EQ(tensor.shape, (Shape{2, std::max<std::size_t>(block_shape(dtype).elements, 32)})) << name;
    EXPECT_EQ(tensor.data.size(), byte_count(tensor.shape, dtype)) << name;
  }
}

}  // namespace
}  // namespace minimind
