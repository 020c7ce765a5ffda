#include <cstddef>
#include <cstdint>

#include "tests/support/read_bytes.h"
#include "weights/gguf/gguf_model.h"

// libFuzzer's entry point: clang++ -fsanitize=fuzzer,address,undefined. Seeds: tests/golden_gguf, and models converted
// from tests/golden.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  minimind::read_bytes(data, size, minimind::read_gguf_model);
  return 0;
}
