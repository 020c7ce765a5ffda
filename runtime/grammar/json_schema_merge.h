#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/grammar/json_schema_keywords.h"

namespace minimind {

// Finds what a schema's references refer to, and makes one schema of several that all have to hold.
class SchemaMerger {
 public:
  // `root` is the whole file and must outlive this.
  SchemaMerger(const SchemaJson& root, const std::string& source) : root_(root), source_(source) {}

  // The schema that a $ref names. Throws Error, at `place`, when there is none, or it is in another file.
  const SchemaJson& resolve(const std::string& reference, const SchemaPlace& place) const;

  // An equal schema without $ref and allOf at its top, nor annotations, and with `enum` in place of `const`: an object,
  // or `false`. Throws Error, at `place`, for parts that cannot be merged simply.
  SchemaJson flatten(const SchemaJson& schema, const SchemaPlace& place);

  // A schema that holds where both hold. Both are flattened.
  SchemaJson merge(const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place);

  // Whether it is certain that no value is valid by both. Both are flattened.
  bool are_disjoint(const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place);

 private:
  void merge_keyword(SchemaJson& into, const std::string& name, const SchemaJson& value, const SchemaPlace& place);
  void merge_properties(SchemaJson& merged, const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place);
  void charge(const SchemaJson& schema, const SchemaPlace& place);

  const SchemaJson& root_;
  const std::string& source_;
  std::size_t depth_ = 0;
  std::size_t work_ = 0;  // values copied
};

}  // namespace minimind
