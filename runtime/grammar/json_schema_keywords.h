#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weights/io/error.h"

namespace minimind {

// The meaning of a JSON Schema's keywords, for json_schema_grammar().

using SchemaJson = nlohmann::ordered_json;

// Throws an Error that names its position.
class SchemaError : public Error {
 public:
  using Error::Error;
};

// A position in a schema, for error messages.
struct SchemaPlace {
  std::string source;
  std::string pointer;  // "#/properties/age"

  SchemaPlace at(std::string_view key) const;
  SchemaPlace at(std::size_t index) const { return at(std::to_string(index)); }
  [[noreturn]] void fail(std::string_view reason) const;
};

enum class JsonType : std::uint8_t { object, array, string, number, integer, boolean, null };
constexpr std::array<std::string_view, 7> json_type_names{"object",  "array",   "string", "number",
                                                          "integer", "boolean", "null"};

// A set of types. An integer is a number, too: no set has both, and the intersection of the two is integer.
class JsonTypes {
 public:
  JsonTypes() = default;
  static JsonTypes all();
  void add(JsonType type);
  bool has(JsonType type) const { return (bits_ >> static_cast<unsigned>(type) & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  JsonTypes operator&(JsonTypes other) const;
  // Returns true if a constant's value is of one of the types.
  bool hold(const SchemaJson& value) const;
  SchemaJson to_json() const;

 private:
  unsigned bits_ = 0;
};

// Returns true if the keyword does not restrict values; definitions, which others refer to, are among these.
bool is_annotation(std::string_view keyword);

// Throws Error, naming it, for a keyword that is unsupported or has an invalid value.
void check_keywords(const SchemaJson& schema, const SchemaPlace& place);

// Returns true if the schema restricts values.
bool says_anything(const SchemaJson& schema);

// Returns `type`; if it is missing, the types that the other keywords restrict; std::nullopt if there are none.
std::optional<JsonTypes> types_of(const SchemaJson& schema);

// Returns the keyword's value as a count; `if_absent` if it is missing. check_keywords() must have accepted it.
std::optional<std::size_t> count_of(const SchemaJson& schema, std::string_view keyword);

// Resolves a schema's references, and merges several schemas that must all hold.
class SchemaMerger {
 public:
  // `root` is the whole file and must outlive this object.
  SchemaMerger(const SchemaJson& root, const std::string& source) : root_(root), source_(source) {}

  // Returns the schema of a $ref. Throws Error, at `place`, if it does not exist or is in another file.
  const SchemaJson& resolve(const std::string& reference, const SchemaPlace& place) const;

  // Returns an equivalent schema without $ref, allOf and annotations at its top, and with `enum` instead of `const`: an
  // object, or `false`. Throws Error, at `place`, for parts that cannot be merged simply.
  SchemaJson flatten(const SchemaJson& schema, const SchemaPlace& place);

  // Returns a schema that holds if both hold. Both must be flattened.
  SchemaJson merge(const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place);

  // Returns true if certainly no value is valid by both. Both must be flattened.
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
