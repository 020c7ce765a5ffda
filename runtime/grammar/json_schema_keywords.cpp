#include "runtime/grammar/json_schema_keywords.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weights/io/json_fields.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

enum class Wants : std::uint8_t { anything, schema, schemas, named_schemas, items, count, number, text, names, types };

struct Keyword {
  std::string_view name;
  Wants wants;
  std::optional<JsonType> about;  // the type of values that it is about, if it is about one
};

constexpr std::array keywords{
    Keyword{"$ref", Wants::text, {}},
    Keyword{"type", Wants::types, {}},
    Keyword{"enum", Wants::anything, {}},
    Keyword{"const", Wants::anything, {}},
    Keyword{"anyOf", Wants::schemas, {}},
    Keyword{"oneOf", Wants::schemas, {}},
    Keyword{"allOf", Wants::schemas, {}},
    Keyword{"properties", Wants::named_schemas, JsonType::object},
    Keyword{"required", Wants::names, JsonType::object},
    Keyword{"additionalProperties", Wants::schema, JsonType::object},
    Keyword{"minProperties", Wants::count, JsonType::object},
    Keyword{"maxProperties", Wants::count, JsonType::object},
    Keyword{"items", Wants::items, JsonType::array},
    Keyword{"prefixItems", Wants::schemas, JsonType::array},
    Keyword{"additionalItems", Wants::schema, JsonType::array},
    Keyword{"minItems", Wants::count, JsonType::array},
    Keyword{"maxItems", Wants::count, JsonType::array},
    Keyword{"minLength", Wants::count, JsonType::string},
    Keyword{"maxLength", Wants::count, JsonType::string},
    Keyword{"pattern", Wants::text, JsonType::string},
    Keyword{"format", Wants::text, JsonType::string},
    Keyword{"minimum", Wants::number, JsonType::number},
    Keyword{"maximum", Wants::number, JsonType::number},
    Keyword{"exclusiveMinimum", Wants::number, JsonType::number},
    Keyword{"exclusiveMaximum", Wants::number, JsonType::number},
};

constexpr std::array<std::string_view, 15> annotations{
    "title", "description", "default", "examples",    "deprecated",      "readOnly",         "writeOnly",  "$schema",
    "$id",   "$comment",    "$defs",   "definitions", "contentEncoding", "contentMediaType", "$vocabulary"};

const Keyword* find(std::string_view name) {
  const auto found =
      std::find_if(keywords.begin(), keywords.end(), [&](const Keyword& keyword) { return keyword.name == name; });
  return found == keywords.end() ? nullptr : &*found;
}

bool is_schema(const SchemaJson& value) {
  return value.is_object() || value.is_boolean();
}

template <class Test>
bool all_of(const SchemaJson& values, Test test) {
  return std::all_of(values.begin(), values.end(), test);
}

bool is_type_name(const SchemaJson& value) {
  return value.is_string() && std::find(json_type_names.begin(), json_type_names.end(),
                                        value.get_ref<const std::string&>()) != json_type_names.end();
}

// What the value should have been; empty when it is.
std::string_view wrong(const SchemaJson& value, Wants wants) {
  switch (wants) {
    case Wants::anything:
      return "";
    case Wants::schema:
      return is_schema(value) ? "" : "a schema: an object, true or false";
    case Wants::schemas:
      return value.is_array() && !value.empty() && all_of(value, is_schema) ? "" : "an array of schemas";
    case Wants::named_schemas:
      return value.is_object() && all_of(value, is_schema) ? "" : "an object of schemas";
    case Wants::items:
      return is_schema(value) || (value.is_array() && all_of(value, is_schema)) ? "" : "a schema or an array of them";
    case Wants::count: {
      const bool whole = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 9e15 &&
                         std::floor(value.get<double>()) == value.get<double>();
      return whole ? "" : "a whole number";
    }
    case Wants::number:
      return value.is_number() ? "" : "a number (draft 4's true and false are not supported)";
    case Wants::text:
      return value.is_string() ? "" : "a text";
    case Wants::names:
      return value.is_array() && all_of(value, [](const SchemaJson& name) { return name.is_string(); })
                 ? ""
                 : "an array of names";
    case Wants::types:
      return is_type_name(value) || (value.is_array() && !value.empty() && all_of(value, is_type_name))
                 ? ""
                 : "object, array, string, number, integer, boolean, null or an array of these";
  }
  return "";
}

// A double holds it, and so does every reader of JSON.
bool is_exact(const SchemaJson& value) {
  if (value.is_structured()) return all_of(value, is_exact);
  return !value.is_number_float() || std::fabs(value.get<double>()) < 9007199254740992.0 ||
         std::floor(value.get<double>()) != value.get<double>();
}

void check_constants(const SchemaJson& values, const SchemaPlace& place) {
  if (!values.is_array() || values.empty()) place.fail("wanted an array of at least one value");
  if (!is_exact(values)) place.fail("holds an integer of over 64 bits, which JSON readers round; write it as a string");
}

}  // namespace

SchemaPlace SchemaPlace::at(std::string_view key) const {
  std::string escaped;
  for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return {source, pointer + "/" + escaped};
}

void SchemaPlace::fail(std::string_view reason) const {
  const std::string shown = minimind::quoted(pointer);
  throw SchemaError(fmt::format("{}: {}: {}", source, shown.substr(1, shown.size() - 2), reason));
}

JsonTypes JsonTypes::all() {
  JsonTypes types;
  for (const JsonType type :
       {JsonType::object, JsonType::array, JsonType::string, JsonType::number, JsonType::boolean, JsonType::null}) {
    types.add(type);
  }
  return types;
}

void JsonTypes::add(JsonType type) {
  constexpr unsigned integer = 1u << static_cast<unsigned>(JsonType::integer);
  constexpr unsigned number = 1u << static_cast<unsigned>(JsonType::number);
  bits_ |= 1u << static_cast<unsigned>(type);
  if ((bits_ & number) != 0) bits_ &= ~integer;
}

JsonTypes JsonTypes::operator&(JsonTypes other) const {
  JsonTypes both;
  both.bits_ = bits_ & other.bits_;
  const bool integers = has(JsonType::integer) || other.has(JsonType::integer);
  const auto numbers = [](JsonTypes types) { return types.has(JsonType::number) || types.has(JsonType::integer); };
  if (integers && numbers(*this) && numbers(other)) both.add(JsonType::integer);
  return both;
}

bool JsonTypes::hold(const SchemaJson& value) const {
  if (value.is_number()) {
    const bool whole = !value.is_number_float() || std::floor(value.get<double>()) == value.get<double>();
    return has(JsonType::number) || (whole && has(JsonType::integer));
  }
  if (value.is_object()) return has(JsonType::object);
  if (value.is_array()) return has(JsonType::array);
  if (value.is_string()) return has(JsonType::string);
  if (value.is_boolean()) return has(JsonType::boolean);
  return has(JsonType::null);
}

SchemaJson JsonTypes::to_json() const {
  SchemaJson names = SchemaJson::array();
  for (std::size_t i = 0; i < json_type_names.size(); ++i) {
    if (has(static_cast<JsonType>(i))) names.push_back(json_type_names[i]);
  }
  return names;
}

bool is_annotation(std::string_view keyword) {
  return keyword.starts_with("x-") || std::find(annotations.begin(), annotations.end(), keyword) != annotations.end();
}

bool says_anything(const SchemaJson& schema) {
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name)) return true;
  }
  return false;
}

void check_keywords(const SchemaJson& schema, const SchemaPlace& place) {
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name)) continue;
    const Keyword* const keyword = find(name);
    if (!keyword) {
      place.fail(fmt::format("the keyword {} is not supported, and leaving it out would let through what is not valid",
                             minimind::quoted(name)));
    }
    const std::string_view wanted = wrong(value, keyword->wants);
    if (!wanted.empty()) place.at(name).fail(fmt::format("found {}; wanted {}", describe(value), wanted));
    if (name == "enum") check_constants(value, place.at(name));
    if (name == "const") check_constants(SchemaJson::array({value}), place.at(name));
  }
}

std::optional<JsonTypes> types_of(const SchemaJson& schema) {
  JsonTypes types;
  const auto stated = schema.find("type");
  if (stated != schema.end()) {
    for (std::size_t i = 0; i < json_type_names.size(); ++i) {
      const bool named = stated->is_array()
                             ? std::find(stated->begin(), stated->end(), json_type_names[i]) != stated->end()
                             : *stated == json_type_names[i];
      if (named) types.add(static_cast<JsonType>(i));
    }
    return types;
  }
  for (const auto& [name, value] : schema.items()) {
    const Keyword* const keyword = find(name);
    if (keyword && keyword->about) types.add(*keyword->about);
  }
  if (types.empty()) return std::nullopt;
  return types;
}

std::optional<std::size_t> count_of(const SchemaJson& schema, std::string_view keyword) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::nullopt;
  return static_cast<std::size_t>(found->get<double>());
}

}  // namespace minimind
