#include "weights/huggingface/write_safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/stored.h"
#include "tests/support/written_file.h"
#include "weights/huggingface/safetensors.h"

namespace minimind {
namespace {

std::shared_ptr<const MappedFile> written(const std::vector<OutputTensor>& tensors) {
  return written_file([&](OutputFile& file) { write_safetensors(file, tensors, 2); });
}

std::string header_of(const MappedFile& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.bytes().data(), sizeof size);
  return as_string(file.bytes().subspan(sizeof size, size));
}

TEST(WriteSafetensors, IsReadBackAsItWas) {
  const StoredTensors tensors = tensors_of_all_float_types();
  expect_same(read_safetensors(written(unchanged(tensors))), tensors);
}

TEST(WriteSafetensors, SaysThatItsTensorsArePyTorchsAndAlignsThem) {
  const StoredTensors tensors = tensors_of_all_float_types();
  const auto file = written(unchanged(tensors));
  const std::string text = header_of(*file);
  EXPECT_EQ(text.size() % 8, 0u);
  const auto header = nlohmann::json::parse(text);
  EXPECT_EQ(header.at("__metadata__"), nlohmann::json({{"format", "pt"}}));
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(header.at(name).at("data_offsets").at(0).get<std::size_t>() % size_of(tensor.dtype), 0u) << name;
  }
}

TEST(WriteSafetensors, RefusesTypesThatItHasNoNameFor) {
  const StoredTensor source = zeros({32});
  const OutputTensor tensor{.name = "w", .dtype = DType::q8_0, .shape = {32}, .sources = {&source}};
  EXPECT_EQ(error_of([&] { written({tensor}); }),
            "tensor 'w' cannot be written to a .safetensors file as q8_0, expected f32, f16 or bf16");
}

}  // namespace
}  // namespace minimind
