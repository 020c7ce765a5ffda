#include "weights/gguf/writer.h"

#include <fmt/core.h>

#include <array>
#include <cassert>
#include <set>
#include <string_view>
#include <type_traits>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

constexpr std::uint32_t written_version = 3;

template <typename Number>
void append(std::string& out, Number number) {
  static_assert(std::is_arithmetic_v<Number>);
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

void append_code(std::string& out, GgufType type) {
  append(out, static_cast<std::uint32_t>(type));
}

// Writes a value, or every element of an array, which memory widens to `Wide`, as a `Stored`.
template <typename Stored, typename Wide>
void append_numbers(std::string& out, const GgufValue& value, std::string_view key) {
  const auto append_one = [&](Wide number) {
    const auto stored = static_cast<Stored>(number);
    if (std::is_integral_v<Stored> && static_cast<Wide>(stored) != number) {
      throw Error(fmt::format("GGUF key {}: {} is not a {}", quote(key), number, name_of(value.type)));
    }
    append(out, stored);
  };
  if (!value.is_array()) return append_one(std::get<Wide>(value.data));
  using List = std::conditional_t<std::is_same_v<Wide, bool>, std::vector<bool>, GgufNumbers<Wide>>;
  const auto& numbers = std::get<List>(value.data);
  for (std::size_t i = 0; i < numbers.size(); ++i) append_one(numbers[i]);
}

void append_texts(std::string& out, const GgufValue& value) {
  if (!value.is_array()) return append_text(out, std::get<std::string>(value.data));
  const auto& texts = std::get<GgufTexts>(value.data);
  for (std::size_t i = 0; i < texts.size(); ++i) append_text(out, texts[i]);
}

void append_data(std::string& out, const GgufValue& value, std::string_view key) {
  if (value.type == GgufType::boolean) return append_numbers<std::uint8_t, bool>(out, value, key);
  if (value.type == GgufType::string) return append_texts(out, value);
  if (value.type == GgufType::array) {
    throw Error(fmt::format("GGUF key {}: arrays of arrays are not written", quote(key)));
  }
  with_number_type(value.type, [&]<class Wide, class Number>() { append_numbers<Number, Wide>(out, value, key); });
}

void append_metadata(std::string& out, const GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    append_text(out, key);
    if (value.is_array()) append_code(out, GgufType::array);
    append_code(out, value.type);
    if (value.is_array()) append(out, std::uint64_t{value.size()});
    append_data(out, value, key);
  }
}

[[noreturn]] void reject(const OutputTensor& tensor, std::string_view reason) {
  throw Error(fmt::format("tensor {} cannot be written as GGUF: {}", quote(tensor.name), reason));
}

// Returns the code of the tensor's type. Throws Error for tensors that llama.cpp rejects.
std::uint32_t check_tensor(const OutputTensor& tensor) {
  if (tensor.name.empty() || tensor.name.size() > gguf_longest_name) {
    reject(tensor, fmt::format("its name has {} bytes, expected 1 to {}", tensor.name.size(), gguf_longest_name));
  }
  if (tensor.shape.size() > gguf_most_dimensions || element_count(tensor.shape) == 0) {
    reject(tensor, fmt::format("its shape is {}, expected at most {} dimensions and none of 0",
                               shape_text(tensor.shape), gguf_most_dimensions));
  }
  const auto code = row_of(tensor.dtype).gguf_type;
  if (!code) reject(tensor, fmt::format("there is no type for {}", name_of(tensor.dtype)));
  if (!byte_count(tensor.shape, tensor.dtype)) {
    reject(tensor, fmt::format("its shape is {}, and {} requires rows of a multiple of {}", shape_text(tensor.shape),
                               name_of(tensor.dtype), block_shape(tensor.dtype).elements));
  }
  return *code;
}

void append_tensors(std::string& out, const std::vector<OutputTensor>& tensors) {
  std::set<std::string_view> names;
  std::size_t offset = 0;
  for (const OutputTensor& tensor : tensors) {
    const std::uint32_t code = check_tensor(tensor);
    if (!names.insert(tensor.name).second) reject(tensor, "its name is repeated");
    append_text(out, tensor.name);
    append(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i > 0; --i) append(out, std::uint64_t{tensor.shape[i - 1]});
    append(out, code);
    append(out, std::uint64_t{offset});
    offset += gguf_padded(byte_count(tensor.shape, tensor.dtype).value(), gguf_default_alignment);
  }
}

}  // namespace

std::string gguf_header(const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors) {
  if (metadata.contains(gguf_alignment_key)) {
    throw Error(fmt::format("GGUF key '{}' is set; what is written is aligned to {} without it", gguf_alignment_key,
                            gguf_default_alignment));
  }
  std::string out(gguf_magic);
  append(out, written_version);
  append(out, std::uint64_t{tensors.size()});
  append(out, std::uint64_t{metadata.entries().size()});
  append_metadata(out, metadata);
  append_tensors(out, tensors);
  out.resize(gguf_padded(out.size(), gguf_default_alignment));
  return out;
}

namespace {

void write_padding(OutputFile& out) {
  constexpr std::array<std::byte, gguf_default_alignment> zeros{};
  const std::size_t size = static_cast<std::size_t>(out.size());
  out.write(std::span(zeros).first(gguf_padded(size, gguf_default_alignment) - size));
}

}  // namespace

void write_gguf(OutputFile& out, const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors,
                std::size_t threads) {
  const std::string header = gguf_header(metadata, tensors);
  out.write(std::as_bytes(std::span(header)));
  for (const OutputTensor& tensor : tensors) {
    [[maybe_unused]] const std::uint64_t end = out.size() + byte_count(tensor);
    encode(tensor, threads, [&](std::span<const std::byte> bytes) { out.write(bytes); });
    assert(out.size() == end);
    write_padding(out);
  }
}

}  // namespace minimind
