#include "weights/checkpoint/weights_hash.h"

#include <gtest/gtest.h>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

std::string hash_of(const std::string& path) {
  return weights_sha256(open_checkpoint(path, {}).tensors);
}

// What the Python of weights_hash.h prints for these files.
TEST(WeightsSha256, IsWhatPythonComputesFromTheSameFile) {
  const std::pair<const char*, const char*> cases[] = {
      {"weights/demo", "bc1bd94d943725edf548e3efdbbb703e1bf1ef95c35a395c606943a0032b154e"},
      {"tests/golden/v3-dense", "f4324f97c0b02e3c769b385c9dc01302f0c579ff15aca57350515ce62c2abc08"},
      {"tests/golden/v3-bf16", "d1df164fe84285985365fa620499f2495ddd9ba4110268583d70197b55e7d7b7"},
      {"tests/golden/v3-fp32", "11c90bb137e94673c495d0e39ae4e686fc3378abbfdc58d23328410f7ef60766"},
      {"tests/golden/v3-moe", "3d45d39c74da6d7f36eb2680349c80414cca635efa28ff8b161d137537fc5e82"},
      {"tests/golden/v2-dense", "54d1e8c64d901d269dfe1eb8ca39cf10e8d46250572f5be2d92d25901915f9a0"},
  };
  for (const auto& [folder, digest] : cases) {
    EXPECT_EQ(hash_of(MINIMIND_SOURCE_DIR "/" + std::string(folder) + "/model.pth"), digest) << folder;
  }
}

// hashlib.sha256(b"a [2]\n" + numpy.array([1, -2], "<f4").tobytes() + b"b [1, 1]\n" + numpy.array([0],
// "<f4").tobytes())
TEST(WeightsSha256, DependsOnNamesShapesAndValues) {
  const StoredTensors tensors{{"b", f32_tensor({1, 1}, {0})}, {"a", f32_tensor({2}, {1, -2})}};
  EXPECT_EQ(weights_sha256(tensors), "34cce658cded0d0ce87ff1cadeda15949bc72cbaa657e3083dd0084f49d1b079");
  EXPECT_NE(weights_sha256({{"b", f32_tensor({1, 1}, {0})}, {"a", f32_tensor({1, 2}, {1, -2})}}),
            weights_sha256(tensors));
  EXPECT_NE(weights_sha256({{"b", f32_tensor({1, 1}, {-0.0f})}, {"a", f32_tensor({2}, {1, -2})}}),
            weights_sha256(tensors));
}

// More than one chunk, and not a whole number of them.
TEST(WeightsSha256, IsEqualInEveryTypeThatRepresentsTheValues) {
  const Shape shape{130, 257};
  std::string as_f32, as_f16, as_bf16;
  for (std::size_t i = 0; i < size_of_shape(shape); ++i) {
    const float value = static_cast<float>(i % 255) - 127;  // 8 bits: even a bfloat16 represents it
    as_f32 += little_endian(value);
    as_f16 += little_endian(to_f16(value).bits);
    as_bf16 += little_endian(to_bf16(value).bits);
  }
  const std::string digest = weights_sha256({{"w", make_tensor(DType::f32, shape, as_f32)}});
  EXPECT_EQ(weights_sha256({{"w", make_tensor(DType::f16, shape, as_f16)}}), digest);
  EXPECT_EQ(weights_sha256({{"w", make_tensor(DType::bf16, shape, as_bf16)}}), digest);
  EXPECT_NE(weights_sha256({{"v", make_tensor(DType::f32, shape, as_f32)}}), digest);
}

TEST(WeightsSha256, IsTheSameInEveryFileFormat) {
  const TemporaryFile pth(pth_bytes(SmallModel().tensors()));
  const TemporaryFile safetensors(safetensors_bytes(SmallModel().tensors()));
  EXPECT_EQ(hash_of(pth.path()), hash_of(safetensors.path()));
}

TEST(WeightsSha256, RequiresTypesOfModels) {
  EXPECT_NE(error_of([] { weights_sha256({{"w", zeros({2}, DType::i64)}}); }).find("i64"), std::string::npos);
}

}  // namespace
}  // namespace minimind
