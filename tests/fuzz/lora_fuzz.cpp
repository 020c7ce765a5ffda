#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/support/read_bytes.h"
#include "weights/checkpoint/open_checkpoint.h"

// Adds the input, as a LoRA's .pth, to a small model.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    open_checkpoint("tests/golden/v3-lora/model.pth", {.overrides = {}, .config_path = {}, .loras = {{.path = path}}});
  });
  return 0;
}
