#include "weights/torch/write_pth.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/stored.h"
#include "tests/support/written_file.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

using Tied = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<const MappedFile> written(const std::vector<OutputTensor>& tensors, const Tied& tied = {}) {
  return written_file([&](OutputFile& file) { write_pth(file, tensors, tied, 2); });
}

TEST(WritePth, IsReadBackAsItWas) {
  const StoredTensors tensors = tensors_of_all_float_types();
  expect_same(read_pth(written(unchanged(tensors))), tensors);
}

TEST(WritePth, LetsTiedNamesShareOneStorage) {
  const StoredTensors tensors = tensors_of_all_float_types();
  const auto file = written(unchanged(tensors), {{"lm_head.weight", "model.layers.0.weight"}});
  const StoredTensors read = read_pth(file);
  ASSERT_EQ(read.size(), tensors.size() + 1);
  EXPECT_EQ(read.at("lm_head.weight").data.data(), read.at("model.layers.0.weight").data.data());
  EXPECT_EQ(read.at("lm_head.weight").shape, read.at("model.layers.0.weight").shape);
}

TEST(WritePth, AlignsTensorsToACacheLine) {
  for (const auto& [name, tensor] : read_pth(written(unchanged(tensors_of_all_float_types())))) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data.data()) % 64, 0u) << name;  // the file begins a page
  }
}

TEST(WritePth, RefusesBlockTypesAndTiesToNothing) {
  const StoredTensor source = zeros({32});
  const OutputTensor blocks{.name = "w", .dtype = DType::q8_0, .shape = {32}, .sources = {&source}};
  EXPECT_EQ(error_of([&] { written({blocks}); }),
            "tensor 'w' cannot be written to a .pth file as q8_0, expected f32, f16 or bf16");
  const OutputTensor plain{.name = "w", .dtype = DType::f32, .shape = {32}, .sources = {&source}};
  EXPECT_EQ(error_of([&] {
              written({plain}, {{"head", "embedding"}});
            }),
            "'head' cannot share the storage of 'embedding', which is not written");
}

}  // namespace
}  // namespace minimind
