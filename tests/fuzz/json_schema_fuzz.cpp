#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "tests/fuzz/mutate_json.h"
#include "tests/support/read_bytes.h"

// Reads the input as a JSON Schema in each style, and follows texts through its grammar: one that exists, and the
// shortest one, which must end.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    for (const bool closed : {false, true}) {
      JsonSchemaOptions options;
      options.closed = closed;
      options.any_spelling = !closed;
      GrammarState state(std::make_shared<const Grammar>(compile_json_schema_file(path, options).grammar));
      const TokenTrie trie({{"{\"a\": [", 0}, {"a", 1}, {"\"", 2}, {"\\u00e9", 3}, {"1.5", 4}, {"}", 5}});
      TokenBits allowed(1);
      for (const char byte : std::string_view("{\"a\": [1.5, \"你\", null]}")) {
        state.advance({&byte, 1});
        state.mark_allowed(trie, allowed);
      }
      std::string text;
      for (int i = 0; i < 60; ++i) {
        std::uint64_t least = ~std::uint64_t{0};
        char best = 0;
        for (int c = 0; c < 256; ++c) {
          const char byte = static_cast<char>(c);
          state.restart();
          if (!state.advance(text + byte) || state.bytes_to_end() >= least) continue;
          least = state.bytes_to_end();
          best = byte;
        }
        state.restart();
        state.advance(text);
        if (state.may_end()) break;
        if (least == ~std::uint64_t{0}) std::abort();
        text += best;
      }
    }
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"type",
                                        "object",
                                        "array",
                                        "string",
                                        "number",
                                        "integer",
                                        "boolean",
                                        "null",
                                        "properties",
                                        "required",
                                        "additionalProperties",
                                        "patternProperties",
                                        "propertyNames",
                                        "minProperties",
                                        "maxProperties",
                                        "items",
                                        "prefixItems",
                                        "contains",
                                        "minContains",
                                        "maxContains",
                                        "minItems",
                                        "maxItems",
                                        "uniqueItems",
                                        "unevaluatedItems",
                                        "unevaluatedProperties",
                                        "enum",
                                        "const",
                                        "multipleOf",
                                        "minimum",
                                        "maximum",
                                        "exclusiveMinimum",
                                        "exclusiveMaximum",
                                        "minLength",
                                        "maxLength",
                                        "pattern",
                                        "format",
                                        "date-time",
                                        "uuid",
                                        "ipv6",
                                        "allOf",
                                        "anyOf",
                                        "oneOf",
                                        "not",
                                        "if",
                                        "then",
                                        "else",
                                        "dependentSchemas",
                                        "dependentRequired",
                                        "$ref",
                                        "$defs",
                                        "#/$defs/a",
                                        "#",
                                        "$id",
                                        "$anchor",
                                        "$dynamicRef",
                                        "$dynamicAnchor",
                                        "$schema",
                                        "definitions",
                                        "^a+$",
                                        "(a|b){2,9}"};
  return minimind::mutate_json(data, size, max_size, seed, words);
}
