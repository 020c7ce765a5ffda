#include "weights/gguf/reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_bytes.h"
#include "tests/support/peak_memory.h"
#include "tests/support/read_bytes.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using namespace std::string_literals;

GgufFile read(const std::string& bytes) {
  return read_gguf(TemporaryFile(bytes).open());
}

void expect_error(const std::string& bytes, std::string_view part) {
  const TemporaryFile file(bytes);
  const std::string message = error_of([&] { read_gguf(file.open()); });
  EXPECT_TRUE(message.starts_with(file.path() + ": ")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nwanted: " << part;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

void expect_error(const GgufBytes& file, std::string_view part) {
  expect_error(file.bytes(), part);
}

// Keys of several types and two tensors, to be corrupt.
GgufBytes small_file() {
  GgufBytes file;
  file.key("general.architecture", 8, gguf_text("llama")).array("a.b", 4, 2, "12345678");
  file.array("t", 8, 2, gguf_text("x") + gguf_text("")).key("yes", 7, "\x01"s);
  file.tensor({.name = "a", .sizes = {2, 2}})
      .tensor({.name = "b", .sizes = {32}, .type = 8, .data = std::string(34, 'b')});
  return file;
}

TEST(LooksLikeGguf, GoesByTheMagic) {
  EXPECT_TRUE(looks_like_gguf(as_bytes("GGUF")));
  EXPECT_TRUE(looks_like_gguf(as_bytes(GgufBytes().bytes())));
  for (const std::string& other : {""s, "GGU"s, "GGML...."s, "gguf"s, "FUGG\0\0\0\3"s}) {
    EXPECT_FALSE(looks_like_gguf(as_bytes(other))) << other;
  }
}

TEST(Gguf, Version2IsReadAsVersion3Is) {
  GgufBytes file = small_file();
  file.version = 2;
  EXPECT_EQ(read(file.bytes()).version, 2u);
  EXPECT_EQ(read(file.bytes()).tensors.size(), 2u);
}

TEST(Gguf, OtherVersionsAreRejectedByNumber) {
  for (const std::uint32_t version : {0u, 1u, 4u, 0x00030000u, UINT32_MAX}) {
    GgufBytes file = small_file();
    file.version = version;
    expect_error(file, "version " + std::to_string(version) + " of GGUF, expected 2 or 3");
  }
}

TEST(Gguf, BigEndianFilesAreRejectedNamingThem) {
  for (const std::uint32_t version : {0x01000000u, 0x02000000u, 0x03000000u}) {
    GgufBytes file = small_file();
    file.version = version;
    expect_error(file, "is big-endian");
  }
}

TEST(Gguf, FilesOfAnotherMagicAreRejected) {
  GgufBytes file = small_file();
  file.magic = "GGML";
  expect_error(file, "does not start with 'GGUF'");
  expect_error("GG"s, "does not start with 'GGUF'");
}

TEST(Gguf, FilesWithoutTensorsHaveOnlyMetadata) {
  GgufBytes file;
  file.key("a", 4, "1234");
  EXPECT_TRUE(read(file.bytes()).tensors.empty());
  EXPECT_TRUE(read(file.header()).metadata.contains("a"));
  EXPECT_TRUE(read(GgufBytes().bytes()).metadata.entries().empty());
}

TEST(Gguf, ScalarsAndEmptyArraysAreRead) {
  GgufBytes file;
  file.array("none", 8, 0, "").tensor({.name = "s", .sizes = {}, .data = "1234"});
  const GgufFile result = read(file.bytes());
  EXPECT_TRUE(result.tensors.at("s").shape.empty());
  EXPECT_EQ(as_string(result.tensors.at("s").data), "1234");
  EXPECT_EQ(std::get<GgufTexts>(result.metadata.find("none")->data).size(), 0u);
}

TEST(Gguf, LastTensorNeedNotBePadded) {
  const std::string whole = small_file().bytes();
  EXPECT_EQ(read(whole.substr(0, whole.size() - 30)).tensors.size(), 2u);
  expect_error(whole.substr(0, whole.size() - 31), "tensor 'b' takes 34 bytes from byte 32 of the data on");
}

TEST(Gguf, AlignmentIsReadFromTheFile) {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    GgufBytes file = small_file();
    file.alignment = alignment;
    file.key("general.alignment", 4, little_endian(alignment));
    EXPECT_EQ(as_string(read(file.bytes()).tensors.at("b").data), std::string(34, 'b')) << alignment;
  }
}

TEST(Gguf, InvalidAlignmentsAreRejected) {
  for (const std::uint32_t alignment : {0u, 3u, 31u, UINT32_MAX}) {
    expect_error(small_file().key("general.alignment", 4, little_endian(alignment)),
                 "'general.alignment' is " + std::to_string(alignment) + ", expected a power of two");
  }
  expect_error(small_file().key("general.alignment", 10, little_endian(std::uint64_t{32})), "is u64, expected u32");
  expect_error(small_file().key("general.alignment", 8, gguf_text("32")), "is string, expected u32");
  expect_error(small_file().array("general.alignment", 4, 1, "\x20\0\0\0"s), "is an array of u32, expected u32");
  expect_error(small_file().key("general.alignment", 4, little_endian(0x80000000u)), "of the data on, which has 0");
}

TEST(Gguf, PartsOfSplitFilesAreRejectedNamingThem) {
  expect_error(small_file().key("split.count", 2, "\x02\0"s), "split over several files");
  expect_error(small_file().key("split.count", 5, "\x03\0\0\0"s), "llama-gguf-split --merge");
  expect_error(small_file().key("split.count", 8, gguf_text("2")), "split over several files");
  EXPECT_NO_THROW(read(small_file().key("split.count", 2, "\x01\0"s).bytes()));
  EXPECT_NO_THROW(read(small_file().key("split.count", 2, "\0\0"s).bytes()));
}

TEST(Gguf, UnknownTypesOfMetadataAreRejected) {
  for (const std::uint32_t type : {13u, 255u, UINT32_MAX}) {
    expect_error(GgufBytes().key("k", type, "12345678"), "key 'k' has a value of type " + std::to_string(type));
    expect_error(GgufBytes().array("k", type, 1, "12345678"), "key 'k' has a value of type " + std::to_string(type));
  }
  expect_error(GgufBytes().array("k", 9, 1, "12345678123456781234"), "key 'k' is an array of arrays");
}

TEST(Gguf, BooleansOtherThan0And1AreRejected) {
  expect_error(GgufBytes().key("k", 7, "\x02"), "key 'k' is a bool of 2");
  expect_error(GgufBytes().array("k", 7, 3, "\x01\0\xff"s), "key 'k' is a bool of 255");
}

TEST(Gguf, EmptyAndRepeatedKeysAreRejected) {
  expect_error(GgufBytes().key("", 4, "1234"), "key 1 of 1 is empty");
  expect_error(GgufBytes().key("k", 4, "1234").key("k", 7, "\x01"), "key 'k' is repeated");
}

TEST(Gguf, NamesOfTensorsMustBePrintableAndDifferent) {
  expect_error(GgufBytes().tensor({.name = ""}), "'' is not a name for a tensor");
  expect_error(GgufBytes().tensor({.name = "a\nb"}), "'a\\x0ab' is not a name for a tensor");
  expect_error(GgufBytes().tensor({.name = "\xff"}), "'\\xff' is not a name for a tensor");
  expect_error(GgufBytes().tensor({}).tensor({}), "tensor 'w' is repeated");
}

TEST(Gguf, CountsAreCheckedAgainstTheRemainingBytes) {
  for (const std::uint64_t count :
       {std::uint64_t{1000}, std::uint64_t{1} << 32, std::uint64_t{INT64_MAX}, UINT64_MAX}) {
    const std::string number = std::to_string(count);
    GgufBytes tensors = small_file();
    tensors.tensor_count = count;
    expect_error(tensors, "the list of tensors has a length of " + number);
    GgufBytes keys = small_file();
    keys.key_count = count;
    expect_error(keys, "the metadata has a length of " + number);
    expect_error(small_file().array("k", 0, count, "1"), "key 'k' has a length of " + number);
    expect_error(small_file().array("k", 8, count, "1"), "key 'k' has a length of " + number);
    expect_error(small_file().key("k", 8, little_endian(count)), "key 'k' has a length of " + number);
    expect_error(small_file().array("k", 8, 1, little_endian(count)), "key 'k' has a length of " + number);
  }
}

TEST(Gguf, MetadataHasLimitsEvenInALargeFile) {
  const std::string large(std::size_t{65} << 20, '\x01');
  expect_error(GgufBytes().array("k", 0, large.size(), large),
               "expected at most 67108864 bytes of metadata and tensor names");
  expect_error(GgufBytes().key("k", 8, gguf_text(large)),
               "expected at most 67108864 bytes of metadata and tensor names");
  GgufBytes many;
  for (int i = 0; i < 4097; ++i) many.key("k" + std::to_string(i), 7, "\x01");
  expect_error(many, "4097 keys of metadata are present, expected at most 4096");
  GgufBytes tensors;
  tensors.key("k", 8, gguf_text(std::string(25 * 65537, 'x')));
  tensors.tensor_count = 65537;
  expect_error(tensors, "65537 tensors are present, expected at most 65536");
}

TEST(Gguf, ShapesThatGgmlCannotHaveAreRejected) {
  expect_error(GgufBytes().tensor({.sizes = {1, 1, 1, 1, 4}}), "tensor 'w' has 5 dimensions, expected at most 4");
  expect_error(GgufBytes().tensor({.dimensions = UINT32_MAX}), "has 4294967295 dimensions");
  expect_error(GgufBytes().tensor({.sizes = {4, 0}}), "tensor 'w' has the shape [0, 4], expected no 0");
  expect_error(GgufBytes().tensor({.sizes = {std::uint64_t{1} << 62}}), "is larger than any memory");
  expect_error(GgufBytes().tensor({.sizes = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}}),
               "larger than any memory");
  expect_error(GgufBytes().tensor({.sizes = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 2}}), "is larger than any memory");
  expect_error(GgufBytes().tensor({.sizes = {9}}), "tensor 'w' takes 36 bytes from byte 0 of the data on");
}

TEST(Gguf, RowsThatAreNotWholeBlocksAreRejected) {
  expect_error(GgufBytes().tensor({.sizes = {16, 2}, .type = 8, .data = std::string(34, 'x')}),
               "tensor 'w' of type Q8_0 and shape [2, 16] has rows that are not a whole number of 32");
  expect_error(GgufBytes().tensor({.sizes = {}, .type = 8}), "rows that are not a whole number of 32");
  expect_error(GgufBytes().tensor({.sizes = {128}, .type = 14}), "rows that are not a whole number of 256");
}

TEST(Gguf, UnsupportedTensorTypesAreRejectedNamingThem) {
  const std::pair<std::uint32_t, const char*> types[] = {{4, "Q4_2"},      {9, "Q8_1"},  {15, "Q8_K"},
                                                         {31, "Q4_0_4_4"}, {41, "Q1_0"}, {43, "number 43"}};
  for (const auto& [code, name] : types) {
    expect_error(GgufBytes().tensor({.type = code}), "tensor 'w' is of type "s + name + ", which is not read");
  }
  expect_error(GgufBytes().tensor({.type = 15}),
               "to one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, "
               "IQ3_XXS, IQ1_S, "
               "IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M, BF16, TQ1_0, TQ2_0, MXFP4, NVFP4");
}

TEST(Gguf, OffsetsThatDoNotFillTheDataAreRejected) {
  expect_error(GgufBytes().tensor({.offset = 16}),
               "tensor 'w' starts at byte 16 of the data, expected a multiple of 32");
  expect_error(GgufBytes().tensor({.offset = 32}), "expected 0: it leaves a hole");
  expect_error(GgufBytes().tensor({.offset = UINT64_MAX - 31}), "it leaves a hole");
  expect_error(GgufBytes().tensor({}).tensor({.name = "v", .offset = 0}), "it overlaps another");
  expect_error(GgufBytes().tensor({.sizes = {12}, .data = std::string(48, 'x')}).tensor({.name = "v", .offset = 32}),
               "expected 64: it overlaps another");
  expect_error(small_file().bytes() + "x", "1 bytes at the end of the file belong to no tensor");
  expect_error(small_file().bytes() + std::string(64, '\0') + "x", "65 bytes at the end of the file");
}

TEST(Gguf, ZerosAtTheEndOfTheFileArePadding) {
  for (const std::size_t count : {1, 32, 4095, 100000}) {
    const GgufFile padded = read(small_file().bytes() + std::string(count, '\0'));
    EXPECT_EQ(padded.tensors.size(), read(small_file().bytes()).tensors.size()) << count;
  }
}

TEST(Gguf, PaddingOfMoreThanAMegabyteIsRejected) {
  const std::string file = small_file().bytes();
  EXPECT_NO_THROW(read(file + std::string(1 << 20, '\0')));
  expect_error(file + std::string((1 << 20) + 1, '\0'),
               "1048577 bytes at the end of the file belong to no tensor, expected at most 1048576 of padding");
}

// The checkpoint keeps the metadata while its tokenizer is read from the same file: four times for both.
TEST(Gguf, ArraysTakeAtMostTwiceTheirSize) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers keep memory";
  constexpr std::size_t size = std::size_t{48} << 20;
  const std::pair<std::uint32_t, std::string> elements[] = {
      {0, "\x01"},        {3, std::string(2, '\x01')}, {6, std::string(4, '\0')},           {7, "\x01"},
      {8, gguf_text("")}, {8, gguf_text("abcdef")},    {8, gguf_text(std::string(16, 'x'))}};
  for (const auto& [type, element] : elements) {
    std::string all;
    all.reserve(size);
    for (std::size_t count = size / element.size(); count > 0; --count) all += element;
    const TemporaryFile file(GgufBytes().array("k", type, all.size() / element.size(), all).bytes());
    all = {};
    EXPECT_LT(peak_memory([&] { read_gguf(file.open()); }), size / 20 * 41) << type << " " << element.size();
  }
}

TEST(Gguf, TensorsMayBeListedInAnyOrder) {
  GgufBytes file;
  file.tensor({.name = "b", .data = "bbbbbbbbbbbbbbbb", .offset = 32}).tensor({.name = "a", .offset = 0});
  EXPECT_EQ(as_string(read(file.bytes()).tensors.at("b").data), std::string(16, 'x'));
  EXPECT_EQ(as_string(read(file.bytes()).tensors.at("a").data), std::string(16, 'b'));
}

TEST(Gguf, EveryTruncationIsRejected) {
  const std::string whole = small_file().bytes();
  for (std::size_t size = 1; size < whole.size() - 30; ++size) {
    EXPECT_NE(error_of([&] { read(whole.substr(0, size)); }), "") << size;
  }
}

// Every place of the header that could be a count, a length, a type or an offset.
TEST(Gguf, EveryNumberWrittenAnywhereGivesAFileOrAnError) {
  constexpr std::uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       33,
                                       INT32_MAX,
                                       UINT32_MAX,
                                       1ull << 32,
                                       1ull << 40,
                                       1ull << 61,
                                       (1ull << 61) + 1,
                                       INT64_MAX,
                                       1ull << 63,
                                       UINT64_MAX - 31,
                                       UINT64_MAX};
  const std::string whole = small_file().bytes();
  const auto check = [](std::shared_ptr<const InputFile> file) {
    for (const auto& [name, tensor] : read_gguf(std::move(file)).tensors) {
      EXPECT_EQ(tensor.data.size(), byte_count(tensor.shape, tensor.dtype)) << name;
    }
  };
  for (std::size_t at = 4; at < small_file().header().size(); ++at) {
    for (const std::uint64_t number : numbers) {
      for (const std::size_t size : {4u, 8u}) {
        const std::string bytes = std::string(whole).replace(at, size, little_endian(number).substr(0, size));
        const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
        EXPECT_NO_THROW(read_bytes(data, bytes.size(), check)) << at << " " << number;
      }
    }
  }
}

// Except for the last number, whose missing bytes come from the padding. The data has none at its end, whose zeros
// could be taken for the file's.
TEST(Gguf, EveryByteMoreOrLessInTheHeaderIsRejected) {
  GgufBytes file = small_file();
  file.tensors.back().sizes = {512};
  file.tensors.back().data = std::string(544, 'b');
  const std::string whole = file.bytes();
  for (std::size_t at = 0; at < file.header().size() - sizeof(std::uint64_t); ++at) {
    EXPECT_NE(error_of([&] { read(std::string(whole).erase(at, 1)); }), "") << at;
    EXPECT_NE(error_of([&] { read(std::string(whole).insert(at, 1, '\x01')); }), "") << at;
  }
}

TEST(GgufMetadata, SetReplacesInPlace) {
  GgufMetadata metadata;
  metadata.set_u32("a", 1);
  metadata.set_string("b", "x");
  metadata.set_f32("a", 0.5f);
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].first, "a");
  EXPECT_EQ(metadata.find("a")->type, GgufType::f32);
  EXPECT_EQ(std::get<double>(metadata.find("a")->data), 0.5);
}

TEST(GgufType, HasAName) {
  EXPECT_EQ(name_of(GgufType::u8), "u8");
  EXPECT_EQ(name_of(GgufType::boolean), "bool");
  EXPECT_EQ(name_of(GgufType::array), "array");
  EXPECT_EQ(name_of(static_cast<GgufType>(13)), "unknown");
}

}  // namespace
}  // namespace minimind
