#pragma once

#include <memory>
#include <mutex>

#include "runtime/grammar/grammar.h"
#include "runtime/json_schema/schema_shapes.h"

namespace minimind {

// A schema as rules of a grammar.
class SchemaRulesSource : public GrammarRulesSource {
 public:
  // Throws SchemaError if no value is valid by the schema.
  SchemaRulesSource(std::unique_ptr<SchemaNodes> nodes, const SchemaStyle& style);

  std::unique_ptr<GrammarRules> start() const override;

 private:
  friend class SchemaRules;

  // Worked out as far as texts needed it.
  mutable std::mutex mutex_;
  std::unique_ptr<SchemaNodes> nodes_;
  mutable SchemaShapes shapes_;
  ShapeId root_;
};

}  // namespace minimind
