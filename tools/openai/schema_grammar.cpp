#include "tools/openai/schema_grammar.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/work.h"
#include "runtime/json_schema/schema_cache.h"
#include "tools/openai/long_work.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// About a millisecond.
constexpr std::size_t most_brief_steps = 100'000;
constexpr std::size_t most_brief_symbols = 5'000;

}  // namespace

std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open) {
  static JsonSchemaCache known;
  JsonSchemaOptions options;
  options.closed = !open;
  if (!BriefWork::expected()) return known.grammar(schema, source, options);
  if (auto grammar = known.grammar(schema, source, options, most_brief_steps)) return grammar;
  throw LongWork();
}

std::shared_ptr<const Grammar> gbnf_grammar(const std::string& text, const std::string& source) {
  const WorkLimit limit(BriefWork::expected() ? most_brief_symbols : SIZE_MAX, source);
  try {
    return std::make_shared<const Grammar>(parse_grammar(text, source));
  } catch (const Error&) {
    if (BriefWork::expected() && limit.exceeded()) throw LongWork();
    throw;
  }
}

}  // namespace minimind
