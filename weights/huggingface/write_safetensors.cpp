#include "weights/huggingface/write_safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

constexpr std::size_t header_alignment = 8;

const char* dtype_name(const OutputTensor& tensor) {
  switch (tensor.dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    default:
      throw Error(fmt::format("tensor {} cannot be written to a .safetensors file as {}, expected f32, f16 or bf16",
                              quote(tensor.name), name_of(tensor.dtype)));
  }
}

// Wide numbers first, so that each tensor is aligned to its own.
std::vector<const OutputTensor*> in_file_order(const std::vector<OutputTensor>& tensors) {
  std::vector<const OutputTensor*> order;
  for (const OutputTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const OutputTensor* a, const OutputTensor* b) { return size_of(a->dtype) > size_of(b->dtype); });
  return order;
}

std::string header_of(const std::vector<const OutputTensor*>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t begin = 0;
  for (const OutputTensor* tensor : tensors) {
    const std::uint64_t end = begin + byte_count(*tensor);
    header[tensor->name] = {{"dtype", dtype_name(*tensor)}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((header_alignment - text.size() % header_alignment) % header_alignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(OutputFile& file, const std::vector<OutputTensor>& tensors, std::size_t threads) {
  const auto order = in_file_order(tensors);
  const std::string header = header_of(order);
  const std::uint64_t header_size = header.size();
  file.write({reinterpret_cast<const std::byte*>(&header_size), sizeof header_size});
  file.write({reinterpret_cast<const std::byte*>(header.data()), header.size()});
  for (const OutputTensor* tensor : order) {
    encode(*tensor, threads, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
}

}  // namespace minimind
