#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/grammar/json_schema.h"
#include "runtime/grammar/state.h"
#include "weights/io/error.h"

// Reads the input as the regular expression of a JSON Schema, and follows a text through its grammar.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  try {
    const std::string pattern(reinterpret_cast<const char*>(data), size);
    const nlohmann::ordered_json schema{{"type", "string"}, {"pattern", pattern}};
    GrammarState state(std::make_shared<const Grammar>(json_schema_grammar(schema, "fuzz")));
    for (const char byte : std::string_view("\"aab-12 \\n你\"")) state.advance({&byte, 1});
  } catch (const Error&) {
  }
  return 0;
}
