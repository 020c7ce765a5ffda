#include <cstddef>
#include <cstdint>

#include "tests/support/read_bytes.h"
#include "weights/huggingface/safetensors.h"

// libFuzzer's entry point: clang++ -fsanitize=fuzzer,address,undefined. Seeds: tests/golden/*/model*.safetensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  minimind::read_bytes(data, size, minimind::read_safetensors);
  return 0;
}
