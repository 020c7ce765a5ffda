#include "weights/gguf/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/byte_reader.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

// Our own limits, so that a file cannot take more memory and time than its weights justify. The metadata of a
// vocabulary of 256000 tokens takes some 16 MB; the largest models have some 2000 tensors.
constexpr std::size_t largest_header = std::size_t{64} << 20;
constexpr std::size_t most_keys = 4096;
constexpr std::size_t most_tensors = 65536;
constexpr std::size_t most_padding = std::size_t{1} << 20;  // at the end of the file

// The smallest sizes. An empty name or string still has its length. A key is not empty and has a type and a value of at
// least one byte. A tensor has a name, its number of dimensions, a type and an offset.
constexpr std::size_t smallest_string = 8;
constexpr std::size_t smallest_key_and_value = smallest_string + 1 + 4 + 1;
constexpr std::size_t smallest_tensor = smallest_string + 1 + 4 + 4 + 8;

constexpr std::string_view corrupt = "the file is corrupt or truncated; copy or download it again";

struct ListedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::size_t> shape;  // outermost first
  std::uint64_t offset = 0;        // into the data
  std::size_t size = 0;
};

// The types of ggml that DType lacks. ggml has removed codes 4, 5, 31 to 33 and 36 to 38; old files have them.
struct OtherType {
  std::uint32_t code;
  std::string_view name;
};
constexpr OtherType other_types[] = {
    {4, "Q4_2"},      {5, "Q4_3"},        {9, "Q8_1"},        {15, "Q8_K"},       {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {41, "Q1_0"},     {42, "Q2_0"},
};

// Returns the type whose DTypeRow::gguf_type is `code`; std::nullopt if DType lacks it.
std::optional<DType> dtype_of_code(std::uint32_t code) {
  const auto* const found =
      std::ranges::find_if(dtype_rows, [&](const DTypeRow& row) { return row.gguf_type == code; });
  return found == std::end(dtype_rows) ? std::nullopt : std::optional(found->type);
}

// Returns ggml's name, such as "Q4_K", whether in DType (in capitals) or not; "number 99" if ggml has no such type.
std::string tensor_type_name(std::uint32_t code) {
  if (const auto type = dtype_of_code(code)) {
    std::string name(name_of(*type));
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
  }
  const auto* const found = std::ranges::find(other_types, code, &OtherType::code);
  return found == std::end(other_types) ? fmt::format("number {}", code) : std::string(found->name);
}

// Lists the tensor types of weights: "F32, F16, ..."
std::string readable_tensor_types() {
  std::map<std::uint32_t, std::string> names;
  for (const DTypeRow& row : dtype_rows) {
    if (!row.gguf_type || !(is_float_type(row.type) || is_block_type(row.type))) continue;
    names[*row.gguf_type] = tensor_type_name(*row.gguf_type);
  }
  std::string text;
  for (const auto& [code, name] : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Reads the length of `what`, in units of at least `smallest` bytes. It must fit into the rest of the file.
std::size_t read_count(ByteReader& reader, std::size_t smallest, std::string_view what) {
  const auto count = reader.read<std::uint64_t>();
  if (count > reader.remaining() / smallest) {
    reader.fail(fmt::format("{} has a length of {} at offset {}, expected at most the {} bytes left; {}", what, count,
                            reader.position() - sizeof count, reader.remaining(), corrupt));
  }
  if (reader.position() + count * smallest > largest_header) {
    reader.fail(fmt::format("{} has a length of {}, expected at most {} bytes of metadata and tensor names", what,
                            count, largest_header));
  }
  return static_cast<std::size_t>(count);
}

// The result is valid until the next read.
std::string_view read_text(ByteReader& reader, std::string_view what) {
  return reader.take_text(read_count(reader, 1, what));
}

std::uint32_t read_version(ByteReader& reader) {
  const auto version = reader.read<std::uint32_t>();
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    reader.fail("the file is big-endian; make it little-endian with gguf-convert-endian of the gguf Python package");
  }
  if (version != 2 && version != 3) {
    reader.fail(
        fmt::format("the file has version {} of GGUF, expected 2 or 3; convert the model again with a current "
                    "llama.cpp, or download the file again",
                    version));
  }
  return version;
}

bool read_boolean(ByteReader& reader, std::string_view what) {
  const auto byte = reader.read<std::uint8_t>();
  if (byte > 1) reader.fail(fmt::format("{} is a bool of {}, expected 0 or 1; {}", what, byte, corrupt));
  return byte == 1;
}

// Reads one value, or `count` values.
GgufValue::Data read_booleans(std::optional<std::size_t> count, ByteReader& reader, std::string_view what) {
  if (!count) return read_boolean(reader, what);
  std::vector<bool> booleans(*count);
  for (std::size_t i = 0; i < *count; ++i) booleans[i] = read_boolean(reader, what);
  return booleans;
}

GgufValue::Data read_texts(std::optional<std::size_t> count, ByteReader& reader, std::string_view what) {
  if (!count) return std::string(read_text(reader, what));
  GgufTexts texts;
  texts.reserve(*count);
  for (std::size_t i = 0; i < *count; ++i) texts.add(read_text(reader, what));
  return texts;
}

// Reads one number, or an array of `count`, which keeps the width that they have in the file.
template <typename Wide, typename Number>
GgufValue::Data read_numbers(std::optional<std::size_t> count, ByteReader& reader) {
  if (!count) return Wide{reader.read<Number>()};
  std::vector<Number> numbers(*count);
  reader.read_into(std::as_writable_bytes(std::span(numbers)));
  return GgufNumbers<Wide>(std::move(numbers));
}

GgufValue::Data read_data(ByteReader& reader, GgufType type, std::optional<std::size_t> count, std::string_view what) {
  if (type == GgufType::boolean) return read_booleans(count, reader, what);
  if (type == GgufType::string) return read_texts(count, reader, what);
  if (type == GgufType::array) {
    reader.fail(fmt::format("{} is an array of arrays, which MiniMind models do not have; {}", what, corrupt));
  }
  return with_number_type(type, [&]<class Wide, class Number>() { return read_numbers<Wide, Number>(count, reader); });
}

std::size_t smallest_size(GgufType type) {
  if (type == GgufType::string) return smallest_string;
  if (type == GgufType::boolean || type == GgufType::array) return 1;
  return with_number_type(type, []<class Wide, class Number>() { return sizeof(Number); });
}

GgufType read_type(ByteReader& reader, std::string_view what) {
  const auto code = reader.read<std::uint32_t>();
  if (code > static_cast<std::uint32_t>(GgufType::f64)) {
    reader.fail(fmt::format("{} has a value of type {}, expected 0 to 12; {}", what, code, corrupt));
  }
  return static_cast<GgufType>(code);
}

GgufMetadata read_metadata(ByteReader& reader, std::size_t count) {
  GgufMetadata metadata;
  for (std::size_t i = 0; i < count; ++i) {
    std::string key(read_text(reader, fmt::format("key {} of {}", i + 1, count)));
    if (key.empty()) reader.fail(fmt::format("key {} of {} is empty; {}", i + 1, count, corrupt));
    const std::string what = fmt::format("key {}", quote(key));
    if (metadata.contains(key)) reader.fail(fmt::format("{} is repeated; {}", what, corrupt));
    GgufValue value;
    value.type = read_type(reader, what);
    std::optional<std::size_t> elements;
    if (value.type == GgufType::array) {
      value.type = read_type(reader, what);
      elements = read_count(reader, smallest_size(value.type), what);
    }
    value.data = read_data(reader, value.type, elements, what);
    metadata.set(std::move(key), std::move(value));
  }
  return metadata;
}

std::size_t read_alignment(const GgufMetadata& metadata, const ByteReader& reader) {
  const GgufValue* value = metadata.find(gguf_alignment_key);
  if (!value) return gguf_default_alignment;
  if (value->type != GgufType::u32 || value->is_array()) {
    reader.fail(fmt::format("key '{}' is {}{}, expected u32; {}", gguf_alignment_key,
                            value->is_array() ? "an array of " : "", name_of(value->type), corrupt));
  }
  const auto alignment = std::get<std::uint64_t>(value->data);
  if (!std::has_single_bit(alignment)) {
    reader.fail(fmt::format("key '{}' is {}, expected a power of two; {}", gguf_alignment_key, alignment, corrupt));
  }
  return static_cast<std::size_t>(alignment);
}

void reject_split(const GgufMetadata& metadata, const ByteReader& reader) {
  const GgufValue* value = metadata.find("split.count");
  if (!value) return;
  const auto* natural = std::get_if<std::uint64_t>(&value->data);
  const auto* integer = std::get_if<std::int64_t>(&value->data);
  const bool whole = (natural && *natural <= 1) || (integer && *integer <= 1);
  if (!whole) {
    reader.fail(
        "the model is split over several files (key 'split.count'); join them first: "
        "llama-gguf-split --merge FIRST_PART OUT");
  }
}

std::vector<std::size_t> read_shape(ByteReader& reader, const std::string& what) {
  const auto dimensions = reader.read<std::uint32_t>();
  if (dimensions > gguf_most_dimensions) {
    reader.fail(
        fmt::format("{} has {} dimensions, expected at most {}; {}", what, dimensions, gguf_most_dimensions, corrupt));
  }
  std::vector<std::size_t> shape(dimensions);
  for (std::size_t& size : shape) size = stated_size(reader.read<std::uint64_t>());
  std::reverse(shape.begin(), shape.end());
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) {
    reader.fail(fmt::format("{} has the shape {}, expected no 0; {}", what, shape_text(shape), corrupt));
  }
  return shape;
}

ListedTensor read_listed_tensor(ByteReader& reader, std::size_t number, std::size_t count) {
  ListedTensor tensor;
  tensor.name = read_text(reader, fmt::format("tensor {} of {}", number, count));
  const std::string what = fmt::format("tensor {}", quote(tensor.name));
  if (!is_tensor_name(tensor.name)) {
    reader.fail(fmt::format("{} is not a name for a tensor; {}", quote(tensor.name), corrupt));
  }
  tensor.shape = read_shape(reader, what);
  const auto code = reader.read<std::uint32_t>();
  const auto dtype = dtype_of_code(code);
  if (!dtype) {
    reader.fail(fmt::format("{} is of type {}, which is not read; convert or quantize the model to one of {}", what,
                            tensor_type_name(code), readable_tensor_types()));
  }
  tensor.dtype = *dtype;
  tensor.offset = reader.read<std::uint64_t>();
  const std::size_t block = block_shape(*dtype).elements;
  if (block > 1 && (tensor.shape.empty() || tensor.shape.back() % block != 0)) {
    reader.fail(fmt::format("{} of type {} and shape {} has rows that are not a whole number of {}; {}", what,
                            tensor_type_name(code), shape_text(tensor.shape), block, corrupt));
  }
  const auto size = byte_count(tensor.shape, *dtype);
  if (!size) {
    reader.fail(fmt::format("{} of shape {} is larger than any memory; {}", what, shape_text(tensor.shape), corrupt));
  }
  tensor.size = *size;
  return tensor;
}

// Tensors may be listed in any order. As in ggml, they fill the data without gaps, each padded to the alignment, so
// that any missing or extra byte in the file is an error. Some zeros may follow, because some tools pad whole files.
void check_coverage(const std::vector<ListedTensor>& tensors, const StoredBytes& data, std::size_t alignment,
                    const ByteReader& reader) {
  const std::size_t data_size = data.size();
  std::vector<const ListedTensor*> by_offset;
  for (const ListedTensor& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const ListedTensor* a, const ListedTensor* b) { return a->offset < b->offset; });
  std::size_t covered = 0;
  for (const ListedTensor* tensor : by_offset) {
    const std::string what = fmt::format("tensor {}", quote(tensor->name));
    if (tensor->offset % alignment != 0) {
      reader.fail(fmt::format("{} starts at byte {} of the data, expected a multiple of {}; {}", what, tensor->offset,
                              alignment, corrupt));
    }
    if (tensor->offset != covered) {
      reader.fail(fmt::format("{} starts at byte {} of the data, expected {}: it {}; {}", what, tensor->offset, covered,
                              tensor->offset < covered ? "overlaps another" : "leaves a hole", corrupt));
    }
    if (covered > data_size || tensor->size > data_size - covered) {
      reader.fail(fmt::format("{} takes {} bytes from byte {} of the data on, which has {}; {}", what, tensor->size,
                              covered, data_size, corrupt));
    }
    covered = gguf_padded(covered + tensor->size, alignment);
  }
  const std::size_t end = std::min(covered, data_size);
  if (data_size - end > most_padding) {
    reader.fail(fmt::format("{} bytes at the end of the file belong to no tensor, expected at most {} of padding; {}",
                            data_size - end, most_padding, corrupt));
  }
  const std::vector<std::byte> padding = data.part(end, data_size - end).read_all();
  if (std::any_of(padding.begin(), padding.end(), [](std::byte byte) { return byte != std::byte{0}; })) {
    reader.fail(fmt::format("{} bytes at the end of the file belong to no tensor and are not zeros, as padding is; {}",
                            padding.size(), corrupt));
  }
}

// Reads the tensors, after `reader` has read their list.
StoredTensors locate(std::vector<ListedTensor> listed, std::size_t alignment, const ByteReader& reader,
                     const std::shared_ptr<const InputFile>& file) {
  const std::size_t data_begin = std::min(gguf_padded(reader.position(), alignment), file->size());
  const StoredBytes data(file, {data_begin, file->size() - data_begin});
  check_coverage(listed, data, alignment, reader);
  StoredTensors tensors;
  for (ListedTensor& tensor : listed) {
    StoredTensor stored;
    stored.dtype = tensor.dtype;
    stored.shape = std::move(tensor.shape);
    stored.data = data.part(static_cast<std::size_t>(tensor.offset), tensor.size);
    stored.file = file->path();
    if (tensors.contains(tensor.name)) {
      reader.fail(fmt::format("tensor {} is repeated; {}", quote(tensor.name), corrupt));
    }
    tensors.emplace(std::move(tensor.name), std::move(stored));
  }
  return tensors;
}

void reject_more_than(std::size_t most, std::size_t count, std::string_view what, const ByteReader& reader) {
  if (count > most) reader.fail(fmt::format("{} {} are present, expected at most {}", count, what, most));
}

}  // namespace

bool looks_like_gguf(std::span<const std::byte> bytes) {
  if (bytes.size() < gguf_magic.size()) return false;
  return ByteReader(bytes, {}).take_text(gguf_magic.size()) == gguf_magic;
}

GgufFile read_gguf(std::shared_ptr<const InputFile> file) {
  if (!looks_like_gguf(file->start())) {
    throw Error(fmt::format("{}: does not start with 'GGUF'; the file is corrupt or not GGUF", file->path()));
  }
  ByteReader reader(*file, {0, file->size()}, file->path() + ": GGUF");
  reader.skip(gguf_magic.size());
  GgufFile result;
  result.version = read_version(reader);
  const std::size_t tensor_count = read_count(reader, smallest_tensor, "the list of tensors");
  reject_more_than(most_tensors, tensor_count, "tensors", reader);
  const std::size_t key_count = read_count(reader, smallest_key_and_value, "the metadata");
  reject_more_than(most_keys, key_count, "keys of metadata", reader);

  result.metadata = read_metadata(reader, key_count);
  reject_split(result.metadata, reader);
  const std::size_t alignment = read_alignment(result.metadata, reader);
  std::vector<ListedTensor> listed;
  for (std::size_t i = 0; i < tensor_count; ++i) listed.push_back(read_listed_tensor(reader, i + 1, tensor_count));
  result.tensors = locate(std::move(listed), alignment, reader, file);
  return result;
}

}  // namespace minimind
