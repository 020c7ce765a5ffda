#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "weights/base/error.h"

// Reads the input as a regular expression of a string, with and without lengths, and of names, and follows texts
// through its grammar.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  try {
    const std::string pattern(reinterpret_cast<const char*>(data), size);
    using Json = nlohmann::ordered_json;
    for (const Json& schema : {Json{{"type", "string"}, {"pattern", pattern}},
                               Json{{"pattern", pattern}, {"minLength", 2}, {"maxLength", 30}},
                               Json{{"patternProperties", {{pattern, false}}}}}) {
      for (const bool any_spelling : {false, true}) {
        JsonSchemaOptions options;
        options.any_spelling = any_spelling;
        GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "fuzz", options).grammar));
        for (const char byte : std::string_view("\"aab-12 \\n你\"")) state.advance({&byte, 1});
        state.restart();
        for (const char byte : std::string_view("{\"aab-12 \\n你\":1}")) state.advance({&byte, 1});
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
