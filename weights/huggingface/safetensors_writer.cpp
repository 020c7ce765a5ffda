#include "weights/huggingface/safetensors_writer.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "weights/io/json_fields.h"

namespace minimind {
namespace {

constexpr std::size_t header_alignment = 8;

std::string_view dtype_name(const OutputTensor& tensor) {
  require_float_type(tensor, ".safetensors");
  return tensor.dtype == DType::f32 ? "F32" : tensor.dtype == DType::f16 ? "F16" : "BF16";
}

// Wider types first, so that each tensor is aligned to its type.
std::vector<const OutputTensor*> in_file_order(const std::vector<OutputTensor>& tensors) {
  std::vector<const OutputTensor*> order;
  for (const OutputTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const OutputTensor* a, const OutputTensor* b) { return size_of(a->dtype) > size_of(b->dtype); });
  return order;
}

std::string header_of(const std::vector<const OutputTensor*>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header{{"__metadata__", metadata}};
  std::vector<nlohmann::ordered_json::object_t::value_type>& members =
      header.get_ref<nlohmann::ordered_json::object_t&>();  // which would look for each name among all before it
  std::uint64_t begin = 0;
  for (const OutputTensor* tensor : tensors) {
    const std::uint64_t end = begin + byte_count(*tensor);
    members.emplace_back(tensor->name,
                         nlohmann::ordered_json{
                             {"dtype", dtype_name(*tensor)}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}});
    begin = end;
  }
  std::string text = dump_json(header);
  text.append((header_alignment - text.size() % header_alignment) % header_alignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(OutputFile& file, const std::vector<OutputTensor>& tensors, std::size_t threads,
                       const std::map<std::string, std::string>& metadata) {
  const auto order = in_file_order(tensors);
  const std::string header = header_of(order, metadata);
  const std::uint64_t header_size = header.size();
  file.write({reinterpret_cast<const std::byte*>(&header_size), sizeof header_size});
  file.write({reinterpret_cast<const std::byte*>(header.data()), header.size()});
  for (const OutputTensor* tensor : order) {
    encode(*tensor, threads, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
}

}  // namespace minimind
