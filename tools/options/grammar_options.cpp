#include "tools/options/grammar_options.h"

#include <fmt/core.h>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/json_schema.h"
#include "tools/terminal/note.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

JsonSchemaOptions schema_options(const GrammarArguments& arguments, bool generated) {
  JsonSchemaOptions options;
  options.closed = generated && !arguments.open_schema;
  options.any_spelling = !generated;
  options.strict = arguments.strict_schema;
  for (const std::string& reference : arguments.schema_references) {
    const std::size_t equals = reference.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == reference.size()) {
      throw UsageError(fmt::format("--schema-ref is {}, expected URI=FILE", quote(reference)));
    }
    options.references[reference.substr(0, equals)] = reference.substr(equals + 1);
  }
  return options;
}

}  // namespace

void GrammarArguments::add_to(CLI::App& command, bool generated) {
  command.add_option("--grammar", grammar_file, "GBNF file that the text must conform to");
  command.add_option("--json-schema", json_schema_file, "JSON Schema file that the text must conform to");
  command.add_flag("--strict-schema", strict_schema, "reject keywords and formats of the schema that would be ignored");
  command
      .add_option("--schema-ref", schema_references,
                  "URI=FILE: the file of a schema that a $ref names; may be repeated")
      ->allow_extra_args(false);
  if (!generated) return;
  command.add_flag("--open-schema", open_schema,
                   "allow properties that the schema does not name, and any order (default: those it names, in order)");
}

std::shared_ptr<const Grammar> GrammarArguments::load(bool generated, bool quiet) const {
  if (!grammar_file.empty() && !json_schema_file.empty()) throw UsageError("give either --grammar or --json-schema");
  const bool about_schema = strict_schema || open_schema || !schema_references.empty();
  if (about_schema && json_schema_file.empty()) {
    throw UsageError("--strict-schema, --open-schema and --schema-ref are for --json-schema; omit them or give it");
  }
  if (!grammar_file.empty()) return std::make_shared<const Grammar>(load_grammar(grammar_file));
  if (json_schema_file.empty()) return nullptr;
  JsonSchemaGrammar schema = compile_json_schema_file(json_schema_file, schema_options(*this, generated));
  if (!quiet && !schema.ignored.empty()) {
    constexpr std::size_t most_listed = 10;
    std::string list;
    for (std::size_t i = 0; i < schema.ignored.size() && i < most_listed; ++i) {
      list += (i > 0 ? ", " : "") + schema.ignored[i];
    }
    if (schema.ignored.size() > most_listed) list += fmt::format(", ... ({} in all)", schema.ignored.size());
    note("{}: ignored, because they say nothing about what is valid: {}; --strict-schema rejects them",
         json_schema_file, list);
  }
  return std::make_shared<const Grammar>(std::move(schema.grammar));
}

}  // namespace minimind
