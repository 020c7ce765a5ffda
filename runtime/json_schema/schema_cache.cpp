#include "runtime/json_schema/schema_cache.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "weights/io/json_fields.h"

namespace minimind {
namespace {

// In steps of compiling, each of which keeps a few bytes, and bytes of the schemas.
constexpr std::size_t most_weight = 20'000'000;
constexpr std::size_t most_entries = 256;

}  // namespace

std::shared_ptr<const Grammar> JsonSchemaCache::grammar(const nlohmann::ordered_json& schema, const std::string& source,
                                                        const JsonSchemaOptions& options) {
  std::string key;
  if (options.references.empty()) {
    for (const bool flag : {options.closed, options.any_spelling, options.strict}) key += flag ? '1' : '0';
    key += source + '\0' + dump_json(schema);
    const std::lock_guard lock(mutex_);
    if (const auto known = by_key_.find(key); known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return entries_.front().grammar;
    }
  }
  JsonSchemaGrammar made = compile_json_schema(schema, source, options);
  auto grammar = std::make_shared<const Grammar>(std::move(made.grammar));
  const std::size_t weight = made.steps + 2 * key.size();
  if (key.empty() || weight > most_weight) return grammar;
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return grammar;
  entries_.push_front({key, grammar, weight});
  by_key_.emplace(std::move(key), entries_.begin());
  weight_ += weight;
  while (weight_ > most_weight || entries_.size() > most_entries) {
    weight_ -= entries_.back().weight;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return grammar;
}

std::size_t JsonSchemaCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace minimind
