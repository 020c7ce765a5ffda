#include "tools/openai/schema_grammar.h"

#include <nlohmann/json.hpp>

#include "runtime/json_schema/schema_cache.h"

namespace minimind {

std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open) {
  static JsonSchemaCache known;
  JsonSchemaOptions options;
  options.closed = !open;
  return known.grammar(schema, source, options);
}

}  // namespace minimind
