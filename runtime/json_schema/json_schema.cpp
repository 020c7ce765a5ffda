#include "runtime/json_schema/json_schema.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "runtime/json_schema/schema_nodes.h"
#include "runtime/json_schema/schema_reader.h"
#include "runtime/json_schema/schema_rules.h"
#include "weights/io/error.h"
#include "weights/io/json_fields.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

constexpr std::size_t max_schema_size = std::size_t{1} << 20;
constexpr int max_file_depth = 100;

SchemaJson read_schema_file(const std::string& path) {
  const auto file = open_input(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > max_schema_size) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", path, bytes.size(), max_schema_size));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_json<SchemaJson>(text, path, max_file_depth, "a JSON Schema");
}

}  // namespace

JsonSchemaGrammar compile_json_schema(const SchemaJson& schema, const std::string& source,
                                      const JsonSchemaOptions& options) {
  if (!schema.is_object() && !schema.is_boolean()) {
    throw SchemaError(fmt::format("{}: #: expected a schema: a JSON object", source));
  }
  std::map<std::string, SchemaJson> references;
  for (const auto& [uri, path] : options.references) references.emplace(uri, read_schema_file(path));
  try {
    JsonSchemaGrammar result;
    auto nodes = read_schemas(schema, source, references);
    result.ignored = nodes->ignored();
    if (options.strict && !result.ignored.empty()) {
      throw SchemaError(fmt::format("{}: {} is not supported", source, result.ignored.front()));
    }
    result.grammar.rules_source =
        std::make_shared<SchemaRulesSource>(std::move(nodes), SchemaStyle{options.closed, options.any_spelling});
    return result;
  } catch (const SchemaError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", source, error.what()));
  }
}

JsonSchemaGrammar compile_json_schema_file(const std::string& path, const JsonSchemaOptions& options) {
  return compile_json_schema(read_schema_file(path), path, options);
}

}  // namespace minimind
