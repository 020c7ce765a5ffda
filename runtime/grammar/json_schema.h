#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/grammar/grammar.h"

namespace minimind {

// Returns the grammar of JSON texts that are valid by a JSON Schema (2020-12, and draft 7's older spellings).
//
// Supported: type, enum, const, anyOf, oneOf, allOf, $ref, $defs, definitions, true and false as schemas;
//   objects: properties, required, additionalProperties, maxProperties, minProperties that `required` already fulfils;
//   arrays: items, prefixItems (or items as an array, with additionalItems), minItems, maxItems;
//   strings: minLength and maxLength, or pattern (see json_pattern.h), or format: date, time, date-time, uuid, email,
//   hostname, ipv4, ipv6;
//   numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum.
// Ignored, because they never make a value invalid: title, description, default, examples, deprecated, readOnly,
//   writeOnly, $schema, $id, $comment, contentEncoding, contentMediaType and keys that start with "x-".
// Every other keyword is rejected, naming it: not, if, uniqueItems, patternProperties, unknown keywords and so on.
//
// Every generated text is valid, but not every valid text can be generated:
// - Properties are in the order of the schema. Others are generated only if additionalProperties is true or a schema,
// or
//   if the schema has no keyword about properties. As in llama.cpp and OpenAI's structured outputs, a missing
//   additionalProperties means no others if `properties` is given. Names of others are written without escapes.
// - All of prefixItems are generated, as far as maxItems allows, and further items only if `items` describes them.
// - A schema without a type but with keywords for one or several types gives values of those types.
// - Numbers and whitespace are those of JsonGrammar; numbers with bounds are those of json_grammar.h.
// - oneOf is rejected unless its alternatives exclude one another by type, by constants or by a required property:
//   a value that is valid by two of them would be invalid.
// - allOf, and any keyword next to $ref, anyOf and oneOf, is merged into one schema; it is rejected if that is not
// simple.
// - A $ref must point into the same file, as "#" or "#/...".
//
// The message of every Error starts with `source`, followed by the position as a JSON pointer. Also throws Error if no
// value is valid.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, const std::string& source);

// Reads a file of at most 1 MiB, nested at most 100 deep. Throws Error, too, if it cannot be read.
Grammar load_json_schema(const std::string& path);

}  // namespace minimind
