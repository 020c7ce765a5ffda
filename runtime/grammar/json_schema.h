#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"

namespace minimind {

struct JsonSchemaOptions {
  // Properties that the schema does not forbid are allowed, in any order, as the standard has it. A closed grammar has
  // only the properties that keywords name, in their order, and others where the schema has a keyword for them.
  bool closed = false;
  // Any white space between the parts of a text. Otherwise none, one space after a comma or colon, or a line end with
  // up to 64 spaces of indent, so that a model cannot write spaces for ever.
  bool any_space = false;
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

JsonSchemaGrammar compile_json_schema(const nlohmann::ordered_json& schema, const std::string& source,
                                      const JsonSchemaOptions& options = {});
JsonSchemaGrammar compile_json_schema_file(const std::string& path, const JsonSchemaOptions& options = {});

// Likewise, without the keywords that were ignored.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, const std::string& source);
Grammar load_json_schema(const std::string& path);

}  // namespace minimind
