#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/grammar/grammar.h"

namespace minimind {

// The grammar of JSON texts that are valid by a JSON Schema (2020-12, and of draft 7 what is written otherwise).
//
// Supported: type, enum, const, anyOf, oneOf, allOf, $ref, $defs, definitions, true and false as schemas;
//   objects: properties, required, additionalProperties, maxProperties, minProperties that `required` already fulfils;
//   arrays: items, prefixItems (or items as an array, with additionalItems), minItems, maxItems;
//   strings: minLength and maxLength, or pattern (see json_pattern.h), or format: date, time, date-time, uuid, email,
//   hostname, ipv4, ipv6;
//   numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum.
// Ignored, because they never make a value invalid: title, description, default, examples, deprecated, readOnly,
//   writeOnly, $schema, $id, $comment, contentEncoding, contentMediaType and what begins with "x-".
// Everything else is refused by name, an unknown keyword as well: not, if, uniqueItems, patternProperties and so on.
//
// What is generated is valid, but not everything valid is generated:
// - Properties come in the order of the schema. Others come only where additionalProperties is true or a schema, or the
//   schema says nothing of properties at all; as in llama.cpp and OpenAI's structured outputs, not saying anything
//   means no others where `properties` is given. Their names are written without escapes.
// - All of prefixItems come, as far as maxItems allows, and others only where `items` says what.
// - A schema that says nothing of the type but has keywords for one or several types gives values of those types.
// - Numbers and white space are those of JsonGrammar; numbers with bounds those of json_number_range.h.
// - oneOf is refused unless its alternatives exclude one another by type, by constants or by a required property: what
//   is valid by two of them would not be valid.
// - allOf, and anything beside $ref, anyOf and oneOf, is merged into one schema; where that is not simple, it is
// refused.
//   A $ref has to lead into the same file, as "#" or "#/...".
//
// `source` begins the message of every Error, which goes on with the place as a JSON pointer. Throws also when nothing
// at all is valid.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, const std::string& source);

// The same for a file of at most 1 MiB, nested at most 100 deep. Throws Error when it cannot be read, too.
Grammar load_json_schema(const std::string& path);

}  // namespace minimind
