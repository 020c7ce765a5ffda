#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/grammar/grammar.h"
#include "runtime/json_schema/json_schema.h"

namespace minimind {

// Compiled schemas by their content, for requests that have the same one again and again: the last ones used, as far as
// their work and text stay within a limit, and why others are refused. Texts share what is worked out of a schema. Any
// number of threads may use it.
class JsonSchemaCache {
 public:
  // Returns the grammar of compile_json_schema(), and throws as that does; null if it is not known and takes over
  // `most_steps` of work. Options with references are not kept.
  std::shared_ptr<const Grammar> grammar(const nlohmann::ordered_json& schema, const std::string& source,
                                         const JsonSchemaOptions& options, std::size_t most_steps = SIZE_MAX);

  std::size_t size() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;  // null: the schema is refused
    std::exception_ptr error;
    std::size_t weight;
  };

  void keep(Entry entry);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  std::map<std::string, std::list<Entry>::iterator> by_key_;
  std::size_t weight_ = 0;
};

}  // namespace minimind
