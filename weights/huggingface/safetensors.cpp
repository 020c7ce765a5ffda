#include "weights/huggingface/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/byte_reader.h"
#include "weights/io/json_fields.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t largest_json_header_of_format = 100'000'000;
constexpr std::uint64_t largest_json_header = 32 << 20;
// {"name": {"shape": [...]}}
constexpr int deepest_nesting = 3;

constexpr std::pair<std::string_view, DType> dtypes[] = {
    {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"F64", DType::f64}, {"I64", DType::i64},
    {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},     {"U8", DType::u8},   {"BOOL", DType::boolean},
};

struct Offsets {
  std::size_t begin;
  std::size_t end;
  std::string_view name;
};

[[noreturn]] void fail(const std::string& where, std::string_view reason) {
  throw Error(fmt::format("{}: {}", where, reason));
}

DType read_dtype(const std::string& text, const std::string& where) {
  const auto* found =
      std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& known) { return known.first == text; });
  if (found == std::end(dtypes)) {
    fail(where, fmt::format("has element type {}; save it as F32, F16 or BF16", quote(text)));
  }
  return found->second;
}

StoredTensor read_entry(const Json& entry, const StoredBytes& data, const std::string& path, const std::string& name) {
  const std::string tensor_name = fmt::format("tensor {}", quote(name));
  const std::string where = fmt::format("{}: {}", path, tensor_name);
  if (!entry.is_object() || entry.size() != 3) {
    fail(where, "is not described by dtype, shape and data_offsets alone; the file is corrupt");
  }
  const JsonFields fields(entry, path, tensor_name);
  StoredTensor tensor;
  tensor.dtype = read_dtype(fields.required_text("dtype"), where);
  tensor.shape = fields.required_sizes("shape");
  const std::vector<std::size_t> offsets = fields.required_sizes("data_offsets");
  if (offsets.size() != 2) fields.fail("data_offsets", "2 offsets");
  const std::size_t begin = offsets[0], end = offsets[1];
  if (begin > end || end > data.size()) {
    fail(where, fmt::format("data_offsets [{}, {}] pass the {} bytes of data; copy or download the file again", begin,
                            end, data.size()));
  }
  const auto size = byte_count(tensor.shape, tensor.dtype);
  if (size != end - begin) {
    fail(where, fmt::format("its shape takes {} bytes of {} and data_offsets [{}, {}] hold {}; the file is corrupt",
                            size ? std::to_string(*size) : "too many", name_of(tensor.dtype), begin, end, end - begin));
  }
  tensor.data = data.part(begin, end - begin);
  tensor.file = path;
  return tensor;
}

void check_metadata(const Json& metadata, const std::string& path) {
  const bool all_text = metadata.is_object() && std::all_of(metadata.begin(), metadata.end(),
                                                            [](const Json& value) { return value.is_string(); });
  if (!all_text) fail(path, "__metadata__ is not a map from strings to strings; the file is corrupt");
}

// Every byte of the data must belong to exactly one tensor, so that a file cannot hide anything.
void check_coverage(const StoredTensors& tensors, const StoredBytes& data, const std::string& path) {
  std::vector<Offsets> parts;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = tensor.data.offset() - data.offset();
    parts.push_back({begin, begin + tensor.data.size(), name});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Offsets& a, const Offsets& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::size_t covered = 0;
  for (const Offsets& part : parts) {
    if (part.begin != covered) {
      fail(path, fmt::format("tensor {} starts at byte {} of the data, expected {}: it {}; the file is corrupt",
                             quote(part.name), part.begin, covered,
                             part.begin < covered ? "overlaps another" : "leaves a hole"));
    }
    covered = part.end;
  }
  if (covered != data.size()) {
    fail(path, fmt::format("{} bytes of data belong to no tensor; the file is corrupt", data.size() - covered));
  }
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() <= sizeof(std::uint64_t)) return false;
  ByteReader reader(bytes, {});
  const auto size = reader.read<std::uint64_t>();
  return size >= 2 && size <= largest_json_header_of_format && reader.read<char>() == '{';
}

StoredTensors read_safetensors(std::shared_ptr<const InputFile> file, std::map<std::string, std::string>* metadata) {
  const std::string& path = file->path();
  ByteReader reader(*file, {0, file->size()}, path + ": safetensors header");
  const auto header_size = reader.read<std::uint64_t>();
  if (header_size > largest_json_header) {
    fail(path, fmt::format("the safetensors header has {} bytes, more than {}", header_size, largest_json_header));
  }
  const std::string_view text = reader.take_text(header_size);
  if (!text.starts_with('{')) fail(path, "the safetensors header does not start with '{'; the file is corrupt");
  const StoredBytes data(file, {reader.position(), reader.remaining()});

  StoredTensors tensors;
  bool has_metadata = false;
  const auto use = [&](const std::string& name, const Json& entry) {
    const bool is_metadata = name == "__metadata__";
    if (is_metadata ? has_metadata : tensors.contains(name)) {
      fail(path, fmt::format("the header's entry {} is repeated", quote(name)));
    }
    if (is_metadata) {
      has_metadata = true;
      check_metadata(entry, path);
      if (metadata) *metadata = entry.get<std::map<std::string, std::string>>();
      return;
    }
    if (!is_tensor_name(name)) fail(path, fmt::format("{} is not a name for a tensor", quote(name)));
    if (tensors.size() == largest_tensor_count) {
      fail(path, fmt::format("has more than {} tensors", largest_tensor_count));
    }
    tensors.emplace(name, read_entry(entry, data, path, name));
  };
  read_json_members(text, path + ": the safetensors header", deepest_nesting, use);
  if (tensors.empty()) fail(path, "the safetensors file has no tensors");
  check_coverage(tensors, data, path);
  return tensors;
}

}  // namespace minimind
