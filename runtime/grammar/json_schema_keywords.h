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

// What a JSON Schema's keywords mean to json_schema_grammar(), which see.

using SchemaJson = nlohmann::ordered_json;

// An Error that names its place.
class SchemaError : public Error {
 public:
  using Error::Error;
};

// Where in a schema, for the message of an error.
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

// A set of types. An integer is a number, too: no set holds both, and the intersection of the two is integer.
class JsonTypes {
 public:
  JsonTypes() = default;
  static JsonTypes all();
  void add(JsonType type);
  bool has(JsonType type) const { return (bits_ >> static_cast<unsigned>(type) & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  JsonTypes operator&(JsonTypes other) const;
  // Whether the value, of a constant, is of one of them.
  bool hold(const SchemaJson& value) const;
  SchemaJson to_json() const;

 private:
  unsigned bits_ = 0;
};

// Whether the keyword says nothing about which values are valid; definitions, which others refer to, are among these.
bool is_annotation(std::string_view keyword);

// Throws Error, naming it, for a keyword that is not supported or whose value is not as the standard wants it.
void check_keywords(const SchemaJson& schema, const SchemaPlace& place);

// Whether anything is said about which values are valid.
bool says_anything(const SchemaJson& schema);

// `type`; where it is missing, the types that the other keywords are about; where there are none, nothing.
std::optional<JsonTypes> types_of(const SchemaJson& schema);

// The keyword's value as a count; `if_absent` where it is missing. Checked by check_keywords().
std::optional<std::size_t> count_of(const SchemaJson& schema, std::string_view keyword);

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
