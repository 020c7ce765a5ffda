#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/gguf/reader.h"
#include "weights/gguf/writer.h"

namespace minimind {
namespace {

const std::string golden_folder = MINIMIND_SOURCE_DIR "/tests/golden_gguf/";

OutputTensor tensor_of(const std::string& name, DType dtype, const Shape& shape) {
  OutputTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = shape;
  return tensor;
}

// To be written as it is.
OutputTensor same(const std::string& name, const StoredTensor& source) {
  OutputTensor tensor = tensor_of(name, source.dtype, source.shape);
  tensor.sources = {&source};
  return tensor;
}

// The tensors of a file, in the order of their data.
std::vector<OutputTensor> as_stored(const StoredTensors& tensors) {
  std::vector<OutputTensor> result;
  for (const auto& [name, tensor] : tensors) result.push_back(same(name, tensor));
  std::sort(result.begin(), result.end(), [](const OutputTensor& a, const OutputTensor& b) {
    return a.sources[0]->data.offset() < b.sources[0]->data.offset();
  });
  return result;
}

std::string written(const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors) {
  const TemporaryFile file;
  OutputFile out(file.path());
  write_gguf(out, metadata, tensors, 2);
  out.commit();
  return read_whole_file(file.path());
}

std::string refusal_of(const OutputTensor& tensor) {
  return error_of([&] { gguf_header({}, {tensor}); });
}

TEST(GgufHeader, IsByteForByteWhatTheGgufPackageWrites) {
  for (const char* name : {"metadata.gguf", "types.gguf"}) {
    const GgufFile golden = read_gguf(InputFile::open(golden_folder + name));
    const std::string header = gguf_header(golden.metadata, as_stored(golden.tensors));
    EXPECT_EQ(header, read_whole_file(golden_folder + name).substr(0, header.size())) << name;
  }
}

TEST(WriteGguf, FilesAreByteForByteWhatTheGgufPackageWrites) {
  for (const char* name : {"metadata.gguf", "types.gguf"}) {
    const GgufFile golden = read_gguf(InputFile::open(golden_folder + name));
    EXPECT_EQ(written(golden.metadata, as_stored(golden.tensors)), read_whole_file(golden_folder + name)) << name;
  }
}

TEST(WriteGguf, MetadataIsReadBack) {
  GgufMetadata metadata;
  metadata.set_string("general.architecture", "llama");
  metadata.set_u32("u", UINT32_MAX);
  metadata.set_f32("f", 1e-6f);
  metadata.set_bool("b", true);
  metadata.set_strings("s", {"<s>", "", std::string("\xff\0", 2)});
  metadata.set_strings("none", {});
  metadata.set_i32s("i", {INT32_MIN, -1, INT32_MAX});
  const StoredTensor source = counting_tensor({3, 5});
  const TemporaryFile file(written(metadata, {same("w", source)}));
  const GgufFile read = read_gguf(file.open());
  ASSERT_EQ(read.metadata.entries().size(), metadata.entries().size());
  for (std::size_t i = 0; i < metadata.entries().size(); ++i) {
    const auto& [key, value] = read.metadata.entries()[i];
    EXPECT_EQ(key, metadata.entries()[i].first);
    EXPECT_EQ(value.type, metadata.entries()[i].second.type) << key;
    EXPECT_EQ(value.data, metadata.entries()[i].second.data) << key;
  }
  EXPECT_EQ(read.tensors.at("w").shape, (Shape{3, 5}));
  EXPECT_EQ(floats_of(read.tensors.at("w")), floats_of(source));
}

TEST(GgufHeader, TypesThatGgufDoesNotHaveAreRejected) {
  EXPECT_EQ(refusal_of(tensor_of("w", DType::u8, {4})),
            "tensor 'w' cannot be written as GGUF: there is no type for u8");
  EXPECT_NE(refusal_of(tensor_of("w", DType::boolean, {4})), "");
}

TEST(GgufHeader, TensorsThatLlamaCppRejectsAreRejected) {
  EXPECT_EQ(refusal_of(tensor_of(std::string(63, 'w'), DType::f32, {1, 2, 3, 4})), "");
  EXPECT_NE(refusal_of(tensor_of(std::string(64, 'w'), DType::f32, {4})).find("64 bytes, expected 1 to 63"),
            std::string::npos);
  EXPECT_NE(refusal_of(tensor_of("", DType::f32, {4})), "");
  EXPECT_NE(refusal_of(tensor_of("w", DType::f32, {1, 1, 1, 1, 1})).find("at most 4 dimensions"), std::string::npos);
  EXPECT_NE(refusal_of(tensor_of("w", DType::f32, {3, 0})).find("[3, 0]"), std::string::npos);
  EXPECT_NE(refusal_of(tensor_of("w", DType::q8_0, {2, 48})).find("rows of a multiple of 32"), std::string::npos);
  const OutputTensor twice = tensor_of("w", DType::f32, {4});
  EXPECT_NE(error_of([&] { gguf_header({}, {twice, twice}); }).find("its name is repeated"), std::string::npos);
}

TEST(GgufHeader, NumbersThatOverflowTheirTypeAreRejected) {
  GgufMetadata metadata;
  metadata.set("k", {GgufType::u8, std::uint64_t{256}});
  EXPECT_EQ(error_of([&] { gguf_header(metadata, {}); }), "GGUF key 'k': 256 is not a u8");
  metadata.set("k", {GgufType::i16, GgufNumbers<std::int64_t>(std::vector<std::int64_t>{1, -40000})});
  EXPECT_EQ(error_of([&] { gguf_header(metadata, {}); }), "GGUF key 'k': -40000 is not a i16");
}

TEST(GgufHeader, AnotherAlignmentIsRejected) {
  GgufMetadata metadata;
  metadata.set_u32("general.alignment", 64);
  EXPECT_NE(error_of([&] { gguf_header(metadata, {}); }).find("'general.alignment' is set"), std::string::npos);
}

}  // namespace
}  // namespace minimind
