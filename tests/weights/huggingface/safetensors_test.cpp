#include "weights/huggingface/safetensors.h"
#include "weights/huggingface/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/peak_memory.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/written_file.h"

namespace minimind {
namespace {

using namespace std::string_literals;

std::string file_of(const std::string& header, const std::string& data = {}) {
  return little_endian(std::uint64_t{header.size()}) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

StoredTensors read(const std::string& bytes) {
  return read_safetensors(TemporaryFile(bytes).open());
}

void expect_error(const std::string& bytes, std::string_view part) {
  const TemporaryFile file(bytes);
  const std::string message = error_of([&] { read_safetensors(file.open()); });
  EXPECT_TRUE(message.starts_with(file.path() + ": ")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(LooksLikeSafetensors, GoesByContent) {
  EXPECT_TRUE(looks_like_safetensors(as_bytes(file_of("{}"))));
  for (const std::string& other : {""s, "12345678"s, "PK\x03\x04 and more"s, "GGUF\x03\0\0\0{"s,
                                   little_endian(UINT64_MAX) + "{}", file_of("[]")}) {
    EXPECT_FALSE(looks_like_safetensors(as_bytes(other))) << other;
  }
}

TEST(Safetensors, TensorsStayInTheFileInAnyOrder) {
  const StoredTensors tensors =
      read(file_of("{" + entry("b", "I8", "[3]", "[8,11]") + "," + entry("a", "F16", "[2,2]", "[0,8]") + "," +
                       R"("__metadata__":{"format":"pt"}})" + "   ",
                   "01234567abc"));
  ASSERT_EQ(tensors.size(), 2u);
  const StoredTensor& a = tensors.at("a");
  EXPECT_EQ(a.dtype, DType::f16);
  EXPECT_EQ(a.shape, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(as_string(a.data), "01234567");
  EXPECT_EQ(as_string(tensors.at("b").data), "abc");
  ASSERT_NE(a.data.file(), nullptr);
  EXPECT_EQ(a.file, a.data.file()->path());
}

TEST(Safetensors, EveryElementTypeHasItsSize) {
  const std::pair<const char*, DType> types[] = {
      {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"F64", DType::f64}, {"I64", DType::i64},
      {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},     {"U8", DType::u8},   {"BOOL", DType::boolean}};
  for (const auto& [name, dtype] : types) {
    const std::size_t size = 3 * size_of(dtype);
    const StoredTensors tensors =
        read(file_of("{" + entry("w", name, "[3]", "[0," + std::to_string(size) + "]") + "}", std::string(size, 'x')));
    EXPECT_EQ(tensors.at("w").dtype, dtype) << name;
  }
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreRead) {
  const StoredTensors tensors =
      read(file_of("{" + entry("s", "F32", "[]", "[0,4]") + "," + entry("e", "F32", "[0,7]", "[4,4]") + "}", "1234"));
  EXPECT_TRUE(tensors.at("s").shape.empty());
  EXPECT_EQ(tensors.at("e").shape, (std::vector<std::size_t>{0, 7}));
}

TEST(Safetensors, OtherElementTypesAreRejectedNamingThem) {
  for (const char* type : {"F8_E4M3", "U16", "U64", "C64", "f32", ""}) {
    expect_error(file_of("{" + entry("w", type, "[1]", "[0,4]") + "}", "1234"),
                 "tensor 'w': has element type '"s + type + "'");
  }
}

TEST(Safetensors, HeadersThatDoNotFitAreRejected) {
  expect_error("1234567", "expected 8;");
  expect_error(little_endian(std::uint64_t{1} << 62) + "{}", "more than 33554432");
  expect_error(little_endian(std::uint64_t{100}) + "{}", "expected 100;");
  expect_error(file_of(""), "does not start with '{'");
  expect_error(file_of(" {}"), "does not start with '{'");
  expect_error(file_of("{}"), "has no tensors");
}

TEST(Safetensors, HeadersThatAreNotJsonAreRejected) {
  for (const std::string& header :
       {"{"s, "{{{"s, "{}x"s, "{\"a\"}"s, "{\"a\":\xff\xfe}"s, "{\"\xff\":1}"s, "{\"a\":1e}"s}) {
    expect_error(file_of(header), "");
  }
  expect_error(file_of("{} trailing"), "the safetensors header: is not valid JSON at byte");
}

TEST(Safetensors, DeepNestingIsRejectedWithoutRecursion) {
  expect_error(file_of(std::string(200'000, '[')), "does not start with '{'");
  expect_error(file_of("{\"a\":" + std::string(200'000, '[')), "is nested too deeply, expected at most 3 levels");
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  expect_error(file_of(objects), "is nested too deeply, expected at most 3 levels");
}

TEST(Safetensors, RepeatedEntriesAreRejected) {
  const std::string w = entry("w", "F32", "[1]", "[0,4]");
  expect_error(file_of("{" + w + "," + w + "}", "1234"), "entry 'w' is repeated");
  expect_error(file_of(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
               "entry 'dtype' is repeated");
}

TEST(Safetensors, EntriesOfOneNameInDifferentTensorsAreFine) {
  EXPECT_EQ(
      read(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[1,2]") + "}", "12")).size(),
      2u);
}

TEST(Safetensors, InvalidEntriesAreRejected) {
  expect_error(file_of(R"({"w":3})"), "tensor 'w': is not described by");
  expect_error(file_of(R"({"w":{"dtype":"F32","shape":[]}})"), "is not described by");
  expect_error(file_of(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":0}})", "1234"),
               "is not described by");
  expect_error(file_of(R"({"w":{"dtype":"F32","shape":[],"offsets":[0,4]}})", "1234"), "data_offsets is missing");
  expect_error(file_of(R"({"w":{"dtype":5,"shape":[],"data_offsets":[0,4]}})", "1234"),
               "tensor 'w'.dtype is 5, expected a string");
  expect_error(file_of(R"({"w":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", "1234"),
               "tensor 'w'.shape is {}, expected an array");
  expect_error(file_of(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0,4,8]}})", "1234"),
               "data_offsets is [0,4,8], expected 2");
  expect_error(file_of(R"({"__metadata__":{"a":1}})"), "__metadata__");
  expect_error(file_of(R"({"__metadata__":[]})"), "__metadata__");
}

TEST(Safetensors, SizesThatAreNotIntegersAreRejected) {
  for (const char* size : {"-4", "1.0", "\"1\"", "null", "18446744073709551616", "1e400", "true"}) {
    EXPECT_NE(error_of([&] { read(file_of("{" + entry("w", "U8", "["s + size + "]", "[0,1]") + "}", "1")); }), "")
        << size;
    EXPECT_NE(error_of([&] { read(file_of("{" + entry("w", "U8", "[1]", "[0,"s + size + "]") + "}", "1")); }), "")
        << size;
  }
  expect_error(file_of("{" + entry("w", "U8", "[-4]", "[0,1]") + "}", "1"), "shape is [-4]");
}

TEST(Safetensors, ShapesThatDoNotFitTheirOffsetsAreRejected) {
  expect_error(file_of("{" + entry("w", "F32", "[2]", "[0,4]") + "}", "1234"), "takes 8 bytes");
  expect_error(file_of("{" + entry("w", "F32", "[8589934592,8589934592]", "[0,4]") + "}", "1234"),
               "takes too many bytes");
  expect_error(file_of("{" + entry("w", "F32", "[4611686018427387904]", "[0,0]") + "}"), "takes too many bytes");
  expect_error(file_of("{" + entry("w", "U8", "[9223372036854775808,0,4]", "[0,0]") + "}"), "takes too many bytes");
}

TEST(Safetensors, OffsetsOutsideTheFileAreRejected) {
  expect_error(file_of("{" + entry("w", "U8", "[5]", "[0,5]") + "}", "1234"), "[0, 5] pass the 4 bytes");
  expect_error(file_of("{" + entry("w", "U8", "[4]", "[4,0]") + "}", "1234"), "[4, 0] pass");
  expect_error(file_of("{" + entry("w", "U8", "[1]", "[18446744073709551615,0]") + "}", "1234"), "pass the 4 bytes");
}

TEST(Safetensors, DataThatIsNotCoveredExactlyIsRejected) {
  expect_error(file_of("{" + entry("w", "U8", "[3]", "[1,4]") + "}", "1234"), "leaves a hole");
  expect_error(file_of("{" + entry("w", "U8", "[3]", "[0,3]") + "}", "1234"), "1 bytes of data belong to no tensor");
  expect_error(file_of("{" + entry("a", "U8", "[3]", "[0,3]") + "," + entry("b", "U8", "[2]", "[2,4]") + "}", "1234"),
               "overlaps another");
  expect_error(file_of("{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[0,4]") + "}", "1234"),
               "overlaps another");
}

TEST(Safetensors, NamesThatCouldNotBePrintedAreRejected) {
  expect_error(file_of("{" + entry("a\\nb", "U8", "[1]", "[0,1]") + "}", "1"), "'a\\x0ab' is not a name for a tensor");
  expect_error(file_of("{" + entry("", "U8", "[1]", "[0,1]") + "}", "1"), "is not a name for a tensor");
}

TEST(Safetensors, EveryTruncationIsRejected) {
  const std::string whole = file_of("{" + entry("w", "F32", "[1]", "[0,4]") + "}", "1234");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(error_of([&] { read(whole.substr(0, size)); }), "") << size;
  }
}

std::string header_of_tensors(std::size_t count) {
  std::string header = "{";
  for (std::size_t i = 0; i < count; ++i) {
    header += (i > 0 ? "," : "") + entry("model.layers." + std::to_string(i) + ".weight", "U8", "[1]",
                                         "[" + std::to_string(i) + "," + std::to_string(i + 1) + "]");
  }
  return header + "}";
}

TEST(Safetensors, RejectsMoreThan65536Tensors) {
  EXPECT_EQ(read(file_of(header_of_tensors(65536), std::string(65536, 'x'))).size(), 65536u);
  expect_error(file_of(header_of_tensors(65537), std::string(65537, 'x')), "has more than 65536 tensors");
}

// Each tensor has its name, its shape and the name of its file.
TEST(Safetensors, TensorsTakeLessThanAKilobyteEach) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers keep memory";
  constexpr std::size_t count = 40'000;
  const TemporaryFile file(file_of(header_of_tensors(count), std::string(count, 'x')));
  EXPECT_LT(peak_memory([&] { read_safetensors(file.open()); }), count * 1024);
}

// What the safetensors library itself wrote.
TEST(GoldenSafetensors, HasTheTensorsOfItsShard) {
  const auto file =
      InputFile::open(MINIMIND_SOURCE_DIR "/tests/golden/hf-qwen3-sharded/model-00001-of-00002.safetensors");
  EXPECT_TRUE(looks_like_safetensors(file->start()));
  const StoredTensors tensors = read_safetensors(file);
  ASSERT_TRUE(tensors.contains("model.embed_tokens.weight"));
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").shape.size(), 2u);
}

std::shared_ptr<const InputFile> written(const std::vector<OutputTensor>& tensors) {
  return written_file([&](OutputFile& file) { write_safetensors(file, tensors, 2); });
}

std::string header_of(const InputFile& file) {
  std::uint64_t size = 0;
  std::memcpy(&size, file.start().data(), sizeof size);
  return as_string(file).substr(sizeof size, size);
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

TEST(WriteSafetensors, RejectsUnsupportedTypes) {
  const StoredTensor source = zeros({32});
  const OutputTensor tensor{.name = "w", .dtype = DType::q8_0, .shape = {32}, .sources = {&source}};
  EXPECT_EQ(error_of([&] { written({tensor}); }),
            "tensor 'w' cannot be written to a .safetensors file as q8_0, expected f32, f16 or bf16");
}

}  // namespace
}  // namespace minimind
