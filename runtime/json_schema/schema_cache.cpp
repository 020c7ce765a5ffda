#include "runtime/json_schema/schema_cache.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/grammar/work.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

// In steps of compiling, each of which keeps a few bytes, and bytes of the schemas.
constexpr std::size_t most_weight = 20'000'000;
constexpr std::size_t most_entries = 256;

}  // namespace

std::shared_ptr<const Grammar> JsonSchemaCache::grammar(const nlohmann::ordered_json& schema, const std::string& source,
                                                        const JsonSchemaOptions& options, std::size_t most_steps) {
  std::string key;
  if (options.references.empty()) {
    for (const bool flag : {options.closed, options.any_spelling, options.strict}) key += flag ? '1' : '0';
    key += static_cast<char>('0' + static_cast<int>(options.whitespace));
    key += source + '\0' + dump_json(schema);
    const std::lock_guard lock(mutex_);
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      if (entries_.front().error) std::rethrow_exception(entries_.front().error);
      return entries_.front().grammar;
    }
  }
  const WorkLimit limit(most_steps, "the schema");
  try {
    JsonSchemaGrammar made = compile_json_schema(schema, source, options);
    if (limit.exceeded()) return nullptr;  // it lacks what is worked out beforehand if there is time
    auto grammar = std::make_shared<const Grammar>(std::move(made.grammar));
    keep({.key = key, .grammar = grammar, .error = nullptr, .weight = made.steps + 2 * key.size()});
    return grammar;
  } catch (const Error&) {
    if (limit.exceeded()) return nullptr;
    keep({.key = key, .grammar = nullptr, .error = std::current_exception(), .weight = 2 * key.size()});
    throw;
  }
}

void JsonSchemaCache::keep(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (entry.key.empty() || entry.weight > most_weight || by_key_.contains(entry.key)) return;
  weight_ += entry.weight;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (weight_ > most_weight || entries_.size() > most_entries) {
    weight_ -= entries_.back().weight;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::size_t JsonSchemaCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace minimind
