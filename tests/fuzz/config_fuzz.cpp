#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/support/read_bytes.h"
#include "weights/checkpoint/checkpoint.h"

// Opens a small model with the input as its config.json.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    open_checkpoint("tests/golden/v3-dense/model.pth", {.overrides = {}, .config_path = path, .loras = {}});
  });
  return 0;
}
