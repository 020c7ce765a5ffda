#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

// The whitespace between the parts of a text.
enum class JsonWhitespace : std::uint8_t {
  none,
  fixed,  // as Python's json.dumps writes it: none, one space after commas and colons, or line ends and indents of at
          // most 64 spaces; between brackets with nothing in them none
  free,   // any
};

struct JsonSchemaOptions {
  // Properties that the schema does not forbid are allowed, in any order, as the standard has it. A closed grammar has
  // only the properties that keywords name, in their order, and others where the schema has a keyword for them. Its
  // whole numbers have digits only, and a text of a schema without a type is of the types that it has keywords for.
  bool closed = false;
  // Any whitespace, and any escape of a character. Otherwise characters are escaped where they must be, or beyond
  // ASCII, as json.dumps escapes them.
  bool any_spelling = false;
  JsonWhitespace whitespace = JsonWhitespace::fixed;  // unless any_spelling
  // Rejects keywords and formats that would be ignored.
  bool strict = false;
  // Further documents by the URI that a $ref has for them. Nothing is ever fetched.
  std::map<std::string, std::string> references;  // URI -> file
};

struct JsonSchemaGrammar {
  Grammar grammar;
  // The keywords and formats that were ignored although their author may expect otherwise, each once.
  std::vector<std::string> ignored;
  // That compiling took, see work.h of the grammar.
  std::size_t steps = 0;
};

// Returns the grammar of JSON texts that are valid by a JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12, as $schema
// says; any other $schema is rejected. Without $schema it is 2020-12, and older spellings are read as well.
//
// Every keyword of these drafts is supported, except for what README.md in this folder lists, which is rejected.
// Formats are checked: date, time, date-time, duration, email, hostname, ipv4, ipv6, uri, uri-reference, iri,
// iri-reference, uri-template, uuid, json-pointer, relative-json-pointer, regex. Patterns are those of pattern.h.
// `nullable` adds null where no $schema is given. Every other keyword and format says nothing about what is valid, and
// is ignored.
//
// A text of the grammar is always valid. A valid text is always in the grammar, except for these choices:
// - An object has no name twice.
// - Surrogates are in pairs. Numbers have at most 40 digits on either side of the point and exponents of two digits.
//   With multipleOf or an enumeration they have no exponent, see plain_number(); with bounds other than 0 only with
//   any_spelling, and one digit other than 0 before the point; with an exclusive bound or multipleOf they have at most
//   15 digits, because a double does not tell more of them apart.
// - Formats are always checked. They are a little stricter: no leap second with an offset; no label of a host name with
//   hyphens as its third and fourth character (as xn-- has); in a regex no named groups, look-around and deep nesting.
// - Keywords count regardless of a metaschema's vocabularies.
// - If uniqueItems must not hold, as within `not`, arrays with repeated items are not distinguished and are rejected.
// - Combinations of alternatives are limited in number, and work on a value in steps (README.md). Beyond that the
//   schema is rejected with an Error; a part of it that may be omitted is omitted, so that a text that was started can
//   be ended, or with any_spelling, which is for texts that exist already, it is an Error of GrammarState when a text
//   has the part.
// - What `options` restrict.
//
// The message of every Error starts with `source`, followed by the position as a JSON pointer. Also throws Error if no
// value is valid, and TooMuchWork of work.h, and Cancelled.
JsonSchemaGrammar compile_json_schema(const nlohmann::ordered_json& schema, const std::string& source,
                                      const JsonSchemaOptions& options = {});

// Returns a JSON number as compile_json_schema() has it everywhere: 30 for 3e1. std::nullopt if the text is no number,
// or if it is too long so.
std::optional<std::string> plain_number(std::string_view number);

// Reads a file that a person named, of at most 1 MiB and nested at most 100 deep; it may be a pipe, as may those of
// `references`. Throws Error, too, if it cannot be read.
JsonSchemaGrammar compile_json_schema_file(const std::string& path, const JsonSchemaOptions& options = {});

}  // namespace minimind
