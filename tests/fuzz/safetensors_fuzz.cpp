#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "tests/fuzz/mutate_safetensors.h"
#include "tests/support/read_bytes.h"
#include "weights/huggingface/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  minimind::read_bytes(data, size, [](auto file) { return minimind::read_safetensors(std::move(file)); });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static constexpr std::string_view words[] = {"dtype", "shape", "data_offsets", "__metadata__", "format",
                                               "pt",    "F32",   "F16",          "BF16",         "F64",
                                               "I64",   "BOOL",  "F8_E4M3",      "F4",           "U8"};
  return minimind::mutate_safetensors(data, size, max_size, seed, words);
}
