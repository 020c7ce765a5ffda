#include "tools/openai/closed_json.h"

#include <nlohmann/json.hpp>

#include "runtime/json_schema/json_schema.h"

namespace minimind {

std::shared_ptr<const Grammar> closed_json_grammar(const ChatJson& schema, const std::string& source) {
  JsonSchemaOptions options;
  options.closed = true;
  return std::make_shared<Grammar>(compile_json_schema(schema, source, options).grammar);
}

}  // namespace minimind
