#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

struct JsonSchemaOptions {
  // Properties that the schema does not forbid are allowed, in any order, as the standard has it. A closed grammar has
  // only the properties that keywords name, in their order, and others where the schema has a keyword for them. Its
  // whole numbers have digits only, and a text of a schema without a type is of the types that it has keywords for.
  bool closed = false;
  // Any white space between the parts of a text. Otherwise none, one space after a comma or colon, or a line end with
  // up to 64 spaces of indent, so that a model cannot write spaces for ever.
  bool any_spelling = false;
  // Rejects keywords and formats that would be ignored.
  bool strict = false;
  // Further documents by the URI that a $ref has for them. Nothing is ever fetched.
  std::map<std::string, std::string> references;  // URI -> file
};

struct JsonSchemaGrammar {
  Grammar grammar;
  // The keywords and formats that were ignored although their author may expect otherwise, each once.
  std::vector<std::string> ignored;
};

// Returns the grammar of JSON texts that are valid by a JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12, as $schema
// says. Without $schema it is 2020-12, and older spellings are read as well.
//
// Every keyword of these drafts is supported, except unevaluatedItems and unevaluatedProperties, and dynamic references
// with several targets: these are rejected. Formats are checked: date, time, date-time, duration, email, hostname,
// ipv4, ipv6, uri, uri-reference, iri, iri-reference, uri-template, uuid, json-pointer, relative-json-pointer, regex.
// Patterns are those of pattern.h. `nullable` adds null where no $schema is given. Every other keyword and format says
// nothing about what is valid, and is ignored.
//
// A text of the grammar is always valid. A valid text is always in the grammar, except for these choices:
// - An object has no name twice.
// - Surrogates are in pairs. Numbers have at most 40 digits on either side of the point and exponents of two digits.
//   With bounds other than 0, multipleOf or an enumeration they have no exponent; with an exclusive bound or multipleOf
//   at most 15 digits, because a double does not tell more of them apart.
// - Formats are a little stricter: no leap second with an offset, no xn-- label in a host name, no deeply nested regex.
// - Where uniqueItems must not hold, as within `not`, arrays with repeated items are not told apart and rejected.
// - Combinations of alternatives are limited in number. Beyond that the schema, or the text, is rejected with an Error.
// - What `options` restrict.
//
// The message of every Error starts with `source`, followed by the position as a JSON pointer. Also throws Error if no
// value is valid.
JsonSchemaGrammar compile_json_schema(const nlohmann::ordered_json& schema, const std::string& source,
                                      const JsonSchemaOptions& options = {});

// Reads a file of at most 1 MiB, nested at most 100 deep. Throws Error, too, if it cannot be read.
JsonSchemaGrammar compile_json_schema_file(const std::string& path, const JsonSchemaOptions& options = {});

// Return the grammar alone.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, const std::string& source);
Grammar load_json_schema(const std::string& path);

}  // namespace minimind
