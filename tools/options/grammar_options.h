#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/grammar/grammar.h"
#include "tools/options/command_options.h"

namespace minimind {

// The options of a grammar that a text must conform to: --grammar, --regex, --json-schema and what belongs to them.
struct GrammarArguments {
  std::string grammar_file;
  std::optional<std::string> pattern;
  std::string json_schema_file;
  bool strict_schema = false;
  bool open_schema = false, closed_schema = false;
  std::optional<std::string> whitespace;
  std::vector<std::string> schema_references;  // URI=FILE

  // Adds them for a text that is generated, which is closed unless open_schema is given, or for one that is checked,
  // which is open unless closed_schema is given.
  void add_to(CommandOptions& command, bool generated);

  // Loads the grammar of a text to generate or to check; null if none is given. Notes what is ignored of a schema,
  // unless `quiet`. Throws UsageError if several are given, and Error as load_grammar(), pattern_grammar() and
  // compile_json_schema_file() do.
  std::shared_ptr<const Grammar> load(bool generated, bool quiet) const;
};

}  // namespace minimind
