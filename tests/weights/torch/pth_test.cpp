#include "weights/torch/pth.h"
#include "weights/torch/pth_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/torch_archive.h"
#include "tests/support/written_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using namespace std::string_literals;
using pickle_writer::dict;
using pickle_writer::global;
using pickle_writer::integer;
using pickle_writer::integers;
using pickle_writer::tensor;
using pickle_writer::TensorFields;
using pickle_writer::text;
using pickle_writer::tuple;

StoredTensors read(const std::string& bytes) {
  return read_pth(TemporaryFile(bytes).open());
}

// 0, 1, 2 ... as float32.
std::string ramp(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += little_endian(static_cast<float>(i));
  return bytes;
}

std::vector<float> floats(const StoredTensor& tensor) {
  const std::string bytes = as_string(tensor.data);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A state dict with the one tensor `w`, whose storage '0' is a ramp of `fields.storage_elements`.
std::string one_tensor(const TensorFields& fields) {
  return torch_zip(dict({text("w"), tensor(fields)}), {{"0", ramp(static_cast<std::size_t>(fields.storage_elements))}});
}

void expect_error(const std::string& bytes, std::string_view part) {
  const TemporaryFile file(bytes);
  const std::string message = error_of([&] { read_pth(file.open()); });
  EXPECT_TRUE(message.starts_with(file.path() + ": ")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(LooksLikePth, GoesByContent) {
  EXPECT_TRUE(looks_like_pth(as_bytes(torch_zip("}", {}))));
  EXPECT_TRUE(looks_like_pth(as_bytes(torch_legacy("}", {}))));
  EXPECT_TRUE(
      looks_like_pth(as_bytes("\x80\x04\x95\x0d\0\0\0\0\0\0\0\x8a\x0al\xfc\x9c"
                              "F\xf9 j\xa8P\x19."s)));
  for (const std::string& other : {""s, "P"s, "GGUF"s, "\x80\x02}."s, "hello there, no checkpoint"s}) {
    EXPECT_FALSE(looks_like_pth(as_bytes(other))) << other;
    if (!other.empty()) expect_error(other, "was not written by torch.save");
  }
}

TEST(Pth, AContiguousTensorStaysInTheFile) {
  const StoredTensors tensors =
      read(one_tensor({.storage_elements = 10, .offset = 3, .shape = {2, 3}, .strides = {3, 1}}));
  const StoredTensor& w = tensors.at("w");
  EXPECT_EQ(w.dtype, DType::f32);
  EXPECT_EQ(w.shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(floats(w), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  ASSERT_NE(w.data.file(), nullptr);
  EXPECT_EQ(w.file, w.data.file()->path());
}

TEST(Pth, StridesOfDimensionsOfSizeOneDoNotMatter) {
  const StoredTensors tensors =
      read(one_tensor({.storage_elements = 3, .shape = {1, 3, 1}, .strides = {999999, 1, 999999}}));
  EXPECT_NE(tensors.at("w").data.file(), nullptr);
  EXPECT_EQ(floats(tensors.at("w")), (std::vector<float>{0, 1, 2}));
}

TEST(Pth, ATransposedTensorIsCopiedIntoRowMajorOrder) {
  const StoredTensors tensors = read(one_tensor({.storage_elements = 6, .shape = {3, 2}, .strides = {1, 3}}));
  const StoredTensor& w = tensors.at("w");
  EXPECT_EQ(floats(w), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(w.data.file(), nullptr);
}

TEST(Pth, ACutOutOfAMatrixIsCopiedWithItsOffset) {
  const StoredTensors tensors =
      read(one_tensor({.storage_elements = 20, .offset = 7, .shape = {2, 1, 3}, .strides = {5, 20, 1}}));
  EXPECT_EQ(floats(tensors.at("w")), (std::vector<float>{7, 8, 9, 12, 13, 14}));
}

TEST(Pth, ScalarsAndEmptyTensorsAreRead) {
  const StoredTensors scalar = read(one_tensor({.storage_elements = 2, .offset = 1}));
  EXPECT_TRUE(scalar.at("w").shape.empty());
  EXPECT_EQ(floats(scalar.at("w")), std::vector<float>{1});
  const StoredTensors empty = read(one_tensor({.storage_elements = 0, .shape = {0, 5}, .strides = {5, 1}}));
  EXPECT_EQ(empty.at("w").shape, (std::vector<std::size_t>{0, 5}));
  EXPECT_EQ(empty.at("w").data.size(), 0u);
}

TEST(Pth, EveryStorageClassHasItsType) {
  const std::pair<const char*, DType> classes[] = {{"FloatStorage", DType::f32},     {"HalfStorage", DType::f16},
                                                   {"BFloat16Storage", DType::bf16}, {"DoubleStorage", DType::f64},
                                                   {"LongStorage", DType::i64},      {"IntStorage", DType::i32},
                                                   {"ShortStorage", DType::i16},     {"CharStorage", DType::i8},
                                                   {"ByteStorage", DType::u8},       {"BoolStorage", DType::boolean}};
  for (const auto& [name, dtype] : classes) {
    const std::string body =
        dict({text("w"), tensor({.storage_class = name, .storage_elements = 3, .shape = {3}, .strides = {1}})});
    const StoredTensors tensors = read(torch_zip(body, {{"0", std::string(3 * size_of(dtype), 'x')}}));
    EXPECT_EQ(tensors.at("w").dtype, dtype) << name;
    EXPECT_EQ(tensors.at("w").data.size(), 3 * size_of(dtype)) << name;
  }
}

TEST(Pth, TiedTensorsShareTheirBytes) {
  const std::string w = tensor({.storage_elements = 2, .shape = {2}, .strides = {1}});
  const StoredTensors tensors = read(torch_zip(dict({text("a"), w, text("b"), w}), {{"0", ramp(2)}}));
  EXPECT_EQ(tensors.at("a").data.offset(), tensors.at("b").data.offset());
}

TEST(Pth, AParameterIsItsTensor) {
  const std::string parameter = global("torch._utils", "_rebuild_parameter") +
                                tuple({tensor({.storage_elements = 2, .shape = {2}, .strides = {1}}), "\x88", "N"}) +
                                "R";
  EXPECT_EQ(floats(read(torch_zip(dict({text("w"), parameter}), {{"0", ramp(2)}})).at("w")),
            (std::vector<float>{0, 1}));
}

TEST(Pth, TheStateDictIsFoundUnderTheKeysOfTrainingScripts) {
  const std::string w = tensor({.storage_elements = 2, .shape = {2}, .strides = {1}});
  const std::string optimizer = dict({text("state"), dict({integer(0), dict({text("exp_avg"), w})})});
  for (const char* key : {"model", "state_dict", "model_state_dict", "module"}) {
    const std::string body = dict({text(key), dict({text("w"), w}), text("optimizer"), optimizer, text("step"),
                                   integer(3), text("wandb_id"), "N", text("rng"), w});
    const StoredTensors tensors = read(torch_zip(body, {{"0", ramp(2)}}));
    EXPECT_EQ(tensors.size(), 1u) << key;
    EXPECT_TRUE(tensors.contains("w")) << key;
  }
}

TEST(Pth, ObjectsThatAreNotStateDictsAreRejected) {
  const std::string w = tensor({.storage_elements = 2, .shape = {2}, .strides = {1}});
  const Storages storages = {{"0", ramp(2)}};
  expect_error(torch_zip("](K\x01"
                         "e",
                         storages),
               "value of type list, expected a state dict");
  expect_error(torch_zip(w, storages), "expected a state dict");
  expect_error(torch_zip("}", storages), "is empty");
  expect_error(torch_zip(dict({text("w"), w, text("epoch"), integer(3)}), storages), "'epoch' is of type int");
  expect_error(torch_zip(dict({text("model"), text("path.pth")}), storages), "'model' is of type str");
  expect_error(torch_zip(dict({integer(1), w}), storages), "a key of type int");
  expect_error(torch_zip(dict({text("w"), w, text("w"), w}), storages), "tensor 'w' is repeated");
  expect_error(
      torch_zip(dict({text("model"), dict({text("w"), w}), text("state_dict"), dict({text("w"), w})}), storages),
      "two state dicts");
}

TEST(Pth, NamesThatCouldNotBePrintedAreRejected) {
  const std::string w = tensor({.storage_elements = 2, .shape = {2}, .strides = {1}});
  for (const std::string& name : {""s, "a\nb"s, "\xff"s, "a\0b"s, std::string(5000, 'n')}) {
    expect_error(torch_zip(dict({text(name), w}), {{"0", ramp(2)}}), "is not a name for a tensor");
  }
}

TEST(Pth, ShapesThatPassTheStorageAreRejected) {
  for (const TensorFields& fields : {
           TensorFields{.storage_elements = 4, .shape = {5}, .strides = {1}},
           TensorFields{.storage_elements = 4, .offset = 1, .shape = {4}, .strides = {1}},
           TensorFields{.storage_elements = 4, .offset = INT64_MAX, .shape = {1}, .strides = {1}},
           TensorFields{.storage_elements = 4, .offset = 5, .shape = {0}, .strides = {1}},
           TensorFields{.storage_elements = 4, .shape = {2, 2}, .strides = {3, 1}},
           TensorFields{.storage_elements = 4, .shape = {2}, .strides = {INT64_MAX}},
           TensorFields{.storage_elements = 4, .shape = {4}, .strides = {INT64_MAX}},
           TensorFields{.storage_elements = 4, .shape = {3, 3}, .strides = {INT64_MAX, INT64_MAX}},
           TensorFields{
               .storage_elements = 4, .shape = {std::int64_t{1} << 33, std::int64_t{1} << 33}, .strides = {0, 0}},
           TensorFields{
               .storage_elements = 4, .shape = {std::int64_t{1} << 62, 0, std::int64_t{1} << 62}, .strides = {0, 0, 0}},
           TensorFields{.storage_elements = 0, .shape = {}, .strides = {}},
       }) {
    expect_error(one_tensor(fields), "pass its storage");
  }
}

TEST(Pth, NegativeAndMismatchedSizesAreRejected) {
  expect_error(one_tensor({.storage_elements = 4, .shape = {-1}, .strides = {1}}), "the shape is -1");
  expect_error(one_tensor({.storage_elements = 4, .shape = {1}, .strides = {-1}}), "the stride is -1");
  expect_error(one_tensor({.storage_elements = 4, .offset = -1, .shape = {1}, .strides = {1}}), "the offset is -1");
  expect_error(one_tensor({.storage_elements = 4, .shape = {2}, .strides = {1, 1}}), "1 sizes and 2 strides");
  expect_error(one_tensor({.storage_elements = 4,
                           .shape = std::vector<std::int64_t>(65, 1),
                           .strides = std::vector<std::int64_t>(65, 1)}),
               "65 dimensions");
}

TEST(Pth, ExpandedTensorsThatOutgrowTheirStorageAreRejected) {
  expect_error(one_tensor({.storage_elements = 1, .shape = {1 << 30}, .strides = {0}}), "is expanded to 1073741824");
}

TEST(Pth, CopiesAreBoundedByTheSizeOfTheFile) {
  const std::string transposed = tensor({.storage_elements = 10'000, .shape = {100, 100}, .strides = {1, 100}});
  std::vector<std::string> entries;
  for (int i = 0; i < 100; ++i) {
    entries.push_back(text("w" + std::to_string(i)));
    entries.push_back(transposed);
  }
  expect_error(torch_zip(dict(entries), {{"0", ramp(10'000)}}), "one transposed view too many");
}

TEST(Pth, StoragesThatAreMissingOrOfTheWrongSizeAreRejected) {
  const std::string body = dict({text("w"), tensor({.storage_elements = 4, .shape = {4}, .strides = {1}})});
  expect_error(torch_zip(body, {}), "storage '0' is not in the file");
  expect_error(torch_zip(body, {{"0", ramp(3)}}), "should be 4 elements of f32 and has 12 bytes");
  expect_error(torch_zip(body, {{"0", ramp(5)}}), "should be 4 elements of f32 and has 20 bytes");
  const std::string huge =
      dict({text("w"), tensor({.storage_elements = std::int64_t{1} << 62, .shape = {4}, .strides = {1}})});
  expect_error(torch_zip(huge, {{"0", ""}}), "4611686018427387904 elements");
}

TEST(Pth, StoragesDescribedOtherwiseThanByTorchAreRejected) {
  const auto with_storage = [](const std::string& storage) {
    const std::string built =
        global("torch._utils", "_rebuild_tensor") + tuple({storage, integer(0), integers({1}), integers({1})}) + "R";
    return torch_zip(dict({text("w"), built}), {{"0", ramp(1)}});
  };
  const std::string float_storage = global("torch", "FloatStorage");
  EXPECT_EQ(
      read(with_storage(tuple({text("storage"), float_storage, text("0"), text("cpu"), integer(1)}) + "Q")).size(), 1u);
  expect_error(with_storage("K\x01"), "is built from a int, expected a storage");
  expect_error(with_storage("K\x01Q"), "5 or 6 values");
  expect_error(with_storage(tuple({text("storage"), float_storage, text("0"), text("cpu")}) + "Q"), "5 or 6 values");
  expect_error(with_storage(integers({1, 2, 3, 4, 5, 6, 7}) + "Q"), "5 or 6 values");
  expect_error(with_storage(tuple({text("storage"), float_storage, integer(0), text("cpu"), integer(1)}) + "Q"),
               "as torch.save does");
  expect_error(with_storage(tuple({text("module"), float_storage, text("0"), text("cpu"), integer(1)}) + "Q"),
               "as torch.save does");
  expect_error(with_storage(tuple({text("storage"), text("f"), text("0"), text("cpu"), integer(1)}) + "Q"),
               "as torch.save does");
  expect_error(
      with_storage(tuple({text("storage"), global("torch", "float32"), text("0"), text("cpu"), integer(1)}) + "Q"),
      "'torch.float32' is not a class of storage");
  expect_error(with_storage(tuple({text("storage"), float_storage, text("0"), text("cpu"), integer(-1)}) + "Q"),
               "is -1");
}

TEST(Pth, TensorsBuiltFromTheWrongValuesAreRejected) {
  const auto with_arguments = [](const char* function, const std::string& arguments) {
    return torch_zip(dict({text("w"), global("torch._utils", function) + arguments + "R"}), {{"0", ramp(1)}});
  };
  expect_error(with_arguments("_rebuild_tensor_v2", ")"), "is built from 0 values");
  expect_error(with_arguments("_rebuild_parameter", ")"), "a parameter made of something other than a tensor");
  expect_error(with_arguments("_rebuild_parameter", "K\x01\x85"), "a parameter made of something other than a tensor");
  expect_error(with_arguments("_rebuild_parameter", global("argparse", "Namespace") + ")R\x85"),
               "a parameter made of something other than a tensor");
  expect_error(with_arguments("_rebuild_tensor", integers({1, 2, 3, 4, 5})), "is built from 5 values, expected 4");
  expect_error(with_arguments("_rebuild_tensor_v2", integers({1, 2, 3, 4, 5, 6, 7, 8})), "is built from 8 values");
  expect_error(with_arguments("_rebuild_tensor", tuple({"K\x01Q", "N", integers({1}), integers({1})})),
               "the offset is a None, expected an int");
  expect_error(with_arguments("_rebuild_tensor", tuple({"K\x01Q", integer(0), "K\x01", integers({1})})),
               "the shape is a int");
}

TEST(Pth, ConjugateAndNegativeViewsAreRejected) {
  const auto with_metadata = [](const std::string& metadata) {
    std::string body = tensor({.storage_elements = 1, .shape = {1}, .strides = {1}});
    body.insert(body.size() - 2, metadata);
    return torch_zip(dict({text("w"), body}), {{"0", ramp(1)}});
  };
  expect_error(with_metadata(dict({text("neg"), "\x88"})), "conjugate or negative view");
  expect_error(with_metadata("\x88"), "conjugate or negative view");
  for (const char* nothing : {"N", "}"}) EXPECT_EQ(read(with_metadata(nothing)).size(), 1u) << nothing;
}

TEST(Pth, CodeInThePickleIsRejectedNamingThemAndNotExecuted) {
  const std::string attack = global("posix", "system") + text("touch x") + "\x85R";
  expect_error(torch_zip(dict({text("w"), attack}), {}), "data.pkl: the pickle refers to 'posix.system'");
  expect_error(torch_legacy(attack, {}), "object: the pickle refers to 'posix.system'");
}

TEST(Pth, ArchivesOfOtherProgramsAreRejected) {
  ZipWriter other;
  other.add("word/document.xml", "<x/>");
  expect_error(other.finish(), "zip archive without data.pkl");
  other.add("readme", "");
  expect_error(other.finish(), "zip archive without data.pkl");
  expect_error(ZipWriter().finish(), "zip archive without data.pkl");
  ZipWriter two;
  two.add("a/data.pkl", ".");
  two.add("b/data.pkl", ".");
  expect_error(two.finish(), "two data.pkl");
}

TEST(Pth, TorchScriptIsRejectedNamingThem) {
  for (const char* member : {"m/constants.pkl", "m/code/__torch__.py"}) {
    ZipWriter writer;
    writer.add("m/data.pkl", "\x80\x02}.");
    writer.add(member, "");
    expect_error(writer.finish(), "TorchScript program (it has '"s + member);
  }
  ZipWriter beside;
  beside.add("m/data.pkl", "\x80\x02}.");
  beside.add("n/constants.pkl", "");
  expect_error(beside.finish(), "the state dict is empty");
}

TEST(Pth, BigEndianFilesAreRejected) {
  const std::string body = dict({text("w"), tensor({.storage_elements = 1, .shape = {1}, .strides = {1}})});
  expect_error(torch_zip(body, {{"0", ramp(1)}}, "big"), "byte order is 'big'");
  for (const std::string& no : {"\x89"s, "N"s + integer(1) + "\x88"}) {
    expect_error(torch_legacy(body, {{"0", ramp(1)}}, {.little_endian = no}), "not written on a little-endian machine");
  }
}

TEST(Pth, ATruncatedArchiveSaysSo) {
  const std::string whole = one_tensor({.storage_elements = 4, .shape = {4}, .strides = {1}});
  expect_error(whole.substr(0, whole.size() - 1), "is truncated");
  expect_error(whole.substr(0, whole.size() / 2), "is truncated");
}

TEST(LegacyPth, TensorsStayInTheFile) {
  const std::string body =
      dict({text("a"), tensor({.key = "11", .storage_elements = 2, .shape = {2}, .strides = {1}, .view = "N"}),
            text("b"), tensor({.key = "7", .storage_elements = 3, .shape = {3}, .strides = {1}, .view = "N"})});
  const StoredTensors tensors = read(torch_legacy(body, {{"11", ramp(2)}, {"7", ramp(3)}}));
  EXPECT_EQ(floats(tensors.at("a")), (std::vector<float>{0, 1}));
  EXPECT_EQ(floats(tensors.at("b")), (std::vector<float>{0, 1, 2}));
  EXPECT_NE(tensors.at("a").data.file(), nullptr);
}

TEST(LegacyPth, AViewOfAStorageIsThatPartOfIt) {
  const auto body = [](std::int64_t offset, std::int64_t elements) {
    const std::string view = tuple({text("99"), integer(offset), integer(elements)});
    return dict({text("w"), tensor({.storage_elements = 10, .offset = 1, .shape = {2}, .strides = {1}, .view = view})});
  };
  EXPECT_EQ(floats(read(torch_legacy(body(4, 3), {{"0", ramp(10)}})).at("w")), (std::vector<float>{5, 6}));
  expect_error(torch_legacy(body(8, 3), {{"0", ramp(10)}}), "views 3 elements at 8 of a storage of 10");
  expect_error(torch_legacy(body(INT64_MAX, INT64_MAX), {{"0", ramp(10)}}), "of a storage of 10");
  expect_error(torch_legacy(body(0, 2), {{"0", ramp(10)}}), "pass its storage of 2");
  for (const std::string& view : {text("99"), integers({0, 2})}) {
    const std::string w = tensor({.storage_elements = 2, .shape = {2}, .strides = {1}, .view = view});
    expect_error(torch_legacy(dict({text("w"), w}), {{"0", ramp(2)}}), "the view of a storage is not a triple");
  }
}

TEST(LegacyPth, CorruptHeadersAndStoragesAreRejected) {
  const std::string body = dict({text("w"), tensor({.storage_elements = 4, .shape = {4}, .strides = {1}})});
  expect_error(torch_legacy(body, {{"0", ramp(4)}}, {.protocol_version = 1002}), "protocol version is not 1001");
  expect_error(torch_legacy(body, {{"0", ramp(4)}}) + "x", "1 bytes follow the last storage");
  expect_error(torch_legacy(body, {{"0", ramp(4)}, {"0", ramp(4)}}), "'0' is repeated");
  expect_error(torch_legacy(body, {{"1", ramp(4)}}), "storage '1' belongs to no tensor");
  expect_error(torch_legacy(body, {{"0", ramp(3)}}), "should be 4 elements");
  const std::string without_storages = torch_legacy(body, {});
  expect_error(without_storages, "storage '0' is not in the file");
  const std::string without_keys = without_storages.substr(0, without_storages.rfind("\x80\x02](e."));
  expect_error(without_keys + "\x80\x02N.", "its storage keys are not a list");
  expect_error(without_keys + "\x80\x02]Na.", "a storage key is not a string");
  const std::string before_system = without_keys.substr(0, without_keys.find("\x80\x02}"));
  expect_error(before_system + "\x80\x02N.", "not written on a little-endian machine");
  const std::string half =
      tensor({.storage_class = "HalfStorage", .storage_elements = 4, .shape = {4}, .strides = {1}});
  expect_error(torch_legacy(dict({text("v"), half, text("w"), body}), {}), "storage '0' is used with elements of two");
}

TEST(LegacyPth, ElementCountsThatOverflowAreRejected) {
  const std::string body = dict({text("w"), tensor({.storage_elements = 1, .shape = {1}, .strides = {1}})});
  std::string bytes = torch_legacy(body, {{"0", ramp(1)}});
  for (const std::uint64_t count : {UINT64_MAX, std::uint64_t{1} << 62, std::uint64_t{1} << 40}) {
    bytes.replace(bytes.size() - 12, 8, little_endian(count));
    EXPECT_NE(error_of([&] { read(bytes); }), "") << count;
  }
}

TEST(LegacyPth, EveryTruncationIsRejected) {
  const std::string body = dict({text("w"), tensor({.storage_elements = 4, .shape = {4}, .strides = {1}})});
  const std::string whole = torch_legacy(body, {{"0", ramp(4)}});
  EXPECT_EQ(read(whole).size(), 1u);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(error_of([&] { read(whole.substr(0, size)); }), "") << size;
  }
}

// What PyTorch itself wrote, in each of its formats.
TEST(GoldenPth, HasTheTensorsOfTheModel) {
  for (const char* name : {"v3-dense", "v3-legacy-pth", "v3-resume"}) {
    const StoredTensors tensors =
        read_pth(InputFile::open(MINIMIND_SOURCE_DIR "/tests/golden/"s + name + "/model.pth"));
    ASSERT_TRUE(tensors.contains("model.embed_tokens.weight")) << name;
    const StoredTensor& embedding = tensors.at("model.embed_tokens.weight");
    EXPECT_EQ(embedding.dtype, DType::f16) << name;
    EXPECT_EQ(embedding.shape.size(), 2u) << name;
    // Tied, and written twice: MiniMind converts each entry to half precision separately.
    EXPECT_EQ(as_string(embedding.data), as_string(tensors.at("lm_head.weight").data)) << name;
    for (const auto& [tensor_name, tensor] : tensors) {
      EXPECT_TRUE(tensor_name.starts_with("model.") || tensor_name == "lm_head.weight") << name << " " << tensor_name;
      EXPECT_NE(tensor.data.file(), nullptr) << name << " " << tensor_name;
    }
  }
}

using Tied = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<const InputFile> written(const std::vector<OutputTensor>& tensors, const Tied& tied = {}) {
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
  EXPECT_EQ(read.at("lm_head.weight").data.offset(), read.at("model.layers.0.weight").data.offset());
  EXPECT_EQ(read.at("lm_head.weight").shape, read.at("model.layers.0.weight").shape);
}

TEST(WritePth, AlignsTensorsToACacheLine) {
  for (const auto& [name, tensor] : read_pth(written(unchanged(tensors_of_all_float_types())))) {
    EXPECT_EQ(tensor.data.offset() % 64, 0u) << name;
  }
}

TEST(WritePth, RejectsBlockTypesAndTiesToNothing) {
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

TEST(Pth, LongKeysOfStoragesAreRejected) {
  const std::string key(65, '1');
  const std::string body = dict({text("w"), tensor({.key = key, .storage_elements = 1, .shape = {1}, .strides = {1}})});
  expect_error(torch_zip(body, {{key, ramp(1)}}), "has a key of 65 bytes, expected at most 64");
  expect_error(torch_legacy(body, {{key, ramp(1)}}), "has a key of 65 bytes, expected at most 64");
}

TEST(Pth, MoreThan65536TensorsAreRejected) {
  const std::string one = tensor({.storage_elements = 1, .shape = {0}, .strides = {1}});
  std::vector<std::string> entries{text("0"), one + "q\x01"};
  for (int i = 1; i <= 65536; ++i) entries.insert(entries.end(), {text(std::to_string(i)), "h\x01"});
  expect_error(torch_zip(dict(entries), {{"0", ramp(1)}}), "has more than 65536 tensors");
}

TEST(Pth, WhatIsReadForViewsIsBoundedByTheSizeOfTheFile) {
  const std::string far_apart = tensor({.storage_elements = 16'000, .shape = {16}, .strides = {1000}});
  const auto file_of = [&](int views) {
    std::vector<std::string> entries;
    for (int i = 0; i < views; ++i) entries.insert(entries.end(), {text(std::to_string(i)), far_apart});
    return torch_zip(dict(entries), {{"0", ramp(16'000)}});
  };
  EXPECT_EQ(floats(read(file_of(10)).at("9"))[15], 15'000);
  expect_error(file_of(40), "one transposed view too many");
  const auto farther = read(one_tensor({.storage_elements = 32'000, .shape = {16}, .strides = {2000}}));
  EXPECT_EQ(floats(farther.at("w"))[15], 30'000) << "each element is read alone";
}

}  // namespace
}  // namespace minimind
