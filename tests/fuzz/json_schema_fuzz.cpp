#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/grammar/json_schema.h"
#include "runtime/grammar/state.h"
#include "tests/support/read_bytes.h"

// Reads the input as a JSON Schema, and follows a text through its grammar.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    GrammarState state(std::make_shared<const Grammar>(load_json_schema(path)));
    for (const char byte : std::string_view("{\"a\": [1.5, \"你\", null]}")) state.advance({&byte, 1});
  });
  return 0;
}
