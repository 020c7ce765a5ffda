#include "tools/openai/schema_grammar.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/json_schema/schema_cache.h"
#include "weights/base/error.h"

namespace minimind {

namespace {

// About a millisecond.
constexpr std::size_t most_brief_steps = 100'000;

thread_local bool are_brief = false;

}  // namespace

BriefSchemas::BriefSchemas() : before_(std::exchange(are_brief, true)) {}

BriefSchemas::~BriefSchemas() {
  are_brief = before_;
}

std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open) {
  static JsonSchemaCache known;
  JsonSchemaOptions options;
  options.closed = !open;
  if (auto grammar = known.grammar(schema, source, options, are_brief ? most_brief_steps : SIZE_MAX)) return grammar;
  throw LongWork{[schema, source, options] {
    try {
      known.grammar(schema, source, options);
    } catch (const Error&) {  // is known from now on
    }
  }};
}

}  // namespace minimind
