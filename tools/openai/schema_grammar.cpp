#include "tools/openai/schema_grammar.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/json_schema/schema_cache.h"
#include "tools/openai/long_work.h"

namespace minimind {
namespace {

// About a millisecond.
constexpr std::size_t most_brief_steps = 100'000;

}  // namespace

std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open) {
  static JsonSchemaCache known;
  JsonSchemaOptions options;
  options.closed = !open;
  if (!BriefWork::expected()) return known.grammar(schema, source, options);
  if (auto grammar = known.grammar(schema, source, options, most_brief_steps)) return grammar;
  throw LongWork();
}

}  // namespace minimind
