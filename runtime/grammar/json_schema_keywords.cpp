#include "runtime/grammar/json_schema_keywords.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
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
  std::optional<JsonType> about;  // the type of values that it restricts, if it is a single type
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

// Returns the expected value; empty if the value is valid.
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

// Both a double and every reader of JSON represent it exactly.
bool is_exact(const SchemaJson& value) {
  if (value.is_structured()) return all_of(value, is_exact);
  return !value.is_number_float() || std::fabs(value.get<double>()) < 9007199254740992.0 ||
         std::floor(value.get<double>()) != value.get<double>();
}

void check_constants(const SchemaJson& values, const SchemaPlace& place) {
  if (!values.is_array() || values.empty()) place.fail("expected an array of at least one value");
  if (!is_exact(values)) place.fail("has an integer of over 64 bits, which JSON readers round; write it as a string");
}

}  // namespace

SchemaPlace SchemaPlace::at(std::string_view key) const {
  std::string escaped;
  for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return {source, pointer + "/" + escaped};
}

void SchemaPlace::fail(std::string_view reason) const {
  const std::string shown = quote(pointer);
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
      place.fail(
          fmt::format("the keyword {} is not supported, and ignoring it would allow invalid values", quote(name)));
    }
    const std::string_view wanted = wrong(value, keyword->wants);
    if (!wanted.empty()) place.at(name).fail(fmt::format("found {}, expected {}", describe(value), wanted));
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

namespace {

constexpr std::size_t max_merge_depth = 100;
constexpr std::size_t max_merge_work = 2'000'000;

bool contains(const SchemaJson& array, const SchemaJson& value) {
  return std::find(array.begin(), array.end(), value) != array.end();
}

std::size_t size_of(const SchemaJson& value) {
  std::size_t size = 1;
  if (value.is_structured()) {
    for (const SchemaJson& element : value) size += size_of(element);
  }
  return size;
}

SchemaJson both(const SchemaJson& a, const SchemaJson& b) {
  return a == b ? a : SchemaJson{{"allOf", SchemaJson::array({a, b})}};
}

// Decodes "%41" and "~1" in a reference.
std::string unescaped(std::string_view token, const SchemaPlace& place) {
  std::string percent_decoded;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '%') {
      percent_decoded += token[i];
      continue;
    }
    const std::string_view digits = token.substr(i + 1, 2);
    unsigned char byte = 0;
    const char* const end = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16).ptr;
    if (digits.size() != 2 || end != digits.data() + 2) place.fail("a % that is not followed by two digits");
    percent_decoded += static_cast<char>(byte);
    i += 2;
  }
  std::string result;
  for (std::size_t i = 0; i < percent_decoded.size(); ++i) {
    const std::string_view rest = std::string_view(percent_decoded).substr(i);
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      result += percent_decoded[++i] == '0' ? '~' : '/';
    } else {
      result += percent_decoded[i];
    }
  }
  return result;
}

const SchemaJson* child(const SchemaJson& value, const std::string& token) {
  if (value.is_object()) {
    const auto found = value.find(token);
    return found == value.end() ? nullptr : &*found;
  }
  const bool index = value.is_array() && !token.empty() && token.size() < 10 &&
                     std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
  return index && std::stoul(token) < value.size() ? &value[std::stoul(token)] : nullptr;
}

bool shares_constant(const SchemaJson& a, const SchemaJson& b) {
  return std::any_of(a.begin(), a.end(), [&](const SchemaJson& value) { return contains(b, value); });
}

// The constants of `a` that are of the types of `b`: none, if their types are known to differ.
bool types_exclude(const SchemaJson& a, const SchemaJson& b) {
  const auto types = types_of(b);
  if (!b.contains("type") || !types) return false;
  return std::none_of(a["enum"].begin(), a["enum"].end(), [&](const SchemaJson& value) { return types->hold(value); });
}

}  // namespace

const SchemaJson& SchemaMerger::resolve(const std::string& reference, const SchemaPlace& place) const {
  if (reference != "#" && !reference.starts_with("#/")) {
    place.fail(fmt::format("{} is not supported; only \"#\" and \"#/...\", in the same file, are", quote(reference)));
  }
  const SchemaJson* found = &root_;
  for (std::size_t begin = 1; found && begin < reference.size();) {
    const std::size_t end = std::min(reference.find('/', begin + 1), reference.size());
    found = child(*found, unescaped(std::string_view(reference).substr(begin + 1, end - begin - 1), place));
    begin = end;
  }
  if (!found) place.fail(fmt::format("no schema is at {}", quote(reference)));
  if (!found->is_object() && !found->is_boolean()) place.fail(fmt::format("{} is not a schema", quote(reference)));
  return *found;
}

void SchemaMerger::charge(const SchemaJson& schema, const SchemaPlace& place) {
  work_ += size_of(schema);
  if (work_ > max_merge_work) place.fail("the schema is too large after merging its references and allOf");
}

SchemaJson SchemaMerger::flatten(const SchemaJson& schema, const SchemaPlace& place) {
  if (schema.is_boolean()) return schema.get<bool>() ? SchemaJson::object() : SchemaJson(false);
  if (++depth_ > max_merge_depth) place.fail("its references and allOf are circular or nested too deeply");
  check_keywords(schema, place);
  charge(schema, place);
  SchemaJson result = SchemaJson::object();
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name) || name == "$ref" || name == "allOf" || name == "const") continue;
    result[name] = value;
  }
  const auto add = [&](const SchemaJson& part, const SchemaPlace& at) {
    result = merge(result, flatten(part, at), at);
  };
  if (schema.contains("const")) add({{"enum", SchemaJson::array({schema["const"]})}}, place);
  if (schema.contains("$ref")) {
    const std::string reference = schema["$ref"].get<std::string>();
    add(resolve(reference, place.at("$ref")), {source_, reference});
  }
  if (schema.contains("allOf")) {
    for (std::size_t i = 0; i < schema["allOf"].size(); ++i) add(schema["allOf"][i], place.at("allOf").at(i));
  }
  --depth_;
  return result;
}

SchemaJson SchemaMerger::merge(const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place) {
  if (a.is_boolean() || b.is_boolean()) return false;
  if (a.empty()) return b;
  if (b.empty()) return a;
  charge(a, place);
  charge(b, place);
  const bool prefix = a.contains("prefixItems") || b.contains("prefixItems");
  const auto about_items = [](const SchemaJson& schema) {
    return schema.contains("items") || schema.contains("prefixItems") || schema.contains("additionalItems");
  };
  if (about_items(a) && about_items(b) && (prefix || a.contains("additionalItems") || b.contains("additionalItems"))) {
    place.fail("prefixItems and items of several schemas that must all hold cannot be merged");
  }
  SchemaJson merged = a;
  for (const auto& [name, value] : b.items()) {
    if (name == "properties" || name == "additionalProperties") continue;
    const auto present = merged.find(name);
    if (present == merged.end()) {
      merged[name] = value;
    } else if (*present != value) {
      merge_keyword(merged, name, value, place);
    }
  }
  merge_properties(merged, a, b, place);
  return merged;
}

void SchemaMerger::merge_keyword(SchemaJson& into, const std::string& name, const SchemaJson& value,
                                 const SchemaPlace& place) {
  static constexpr std::array<std::string_view, 5> lower{"minimum", "exclusiveMinimum", "minLength", "minItems",
                                                         "minProperties"};
  static constexpr std::array<std::string_view, 5> upper{"maximum", "exclusiveMaximum", "maxLength", "maxItems",
                                                         "maxProperties"};
  SchemaJson& mine = into[name];
  const auto among = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (among(lower)) {
    mine = std::max(mine, value);
  } else if (among(upper)) {
    mine = std::min(mine, value);
  } else if (name == "type") {
    const JsonTypes types = *types_of({{"type", mine}}) & *types_of({{"type", value}});
    if (types.empty()) place.fail("no type fulfils all schemas that must hold");
    mine = types.to_json();
  } else if (name == "enum") {
    SchemaJson kept = SchemaJson::array();
    for (const SchemaJson& constant : mine) {
      if (contains(value, constant)) kept.push_back(constant);
    }
    if (kept.empty()) place.fail("no constant fulfils all schemas that must hold");
    mine = kept;
  } else if (name == "required") {
    for (const SchemaJson& property : value) {
      if (!contains(mine, property)) mine.push_back(property);
    }
  } else if (name == "items" && mine.is_object() && value.is_object()) {
    mine = both(mine, value);
  } else {
    place.fail(fmt::format("{} is in several schemas that must all hold, and cannot be merged", quote(name)));
  }
}

// additionalProperties applies to the properties that its own schema does not name.
void SchemaMerger::merge_properties(SchemaJson& merged, const SchemaJson& a, const SchemaJson& b,
                                    const SchemaPlace& place) {
  const SchemaJson none = SchemaJson::object();
  const auto properties = [&](const SchemaJson& schema) -> const SchemaJson& {
    return schema.contains("properties") ? schema["properties"] : none;
  };
  const auto others = [](const SchemaJson& schema) {
    return schema.contains("additionalProperties") ? schema["additionalProperties"] : SchemaJson(true);
  };
  SchemaJson all = SchemaJson::object();
  const auto add = [&](const SchemaJson& from, const SchemaJson& to) {
    for (const auto& [name, schema] : properties(from).items()) {
      if (all.contains(name)) continue;
      const bool shared = properties(to).contains(name);
      const SchemaJson theirs = shared ? properties(to)[name] : others(to);
      if (!shared && theirs == false) {
        place.fail(
            fmt::format("property {} is of one schema, and additionalProperties: false of another that has to "
                        "hold, too, excludes it",
                        quote(name)));
      }
      all[name] = theirs == true ? schema : both(schema, theirs);
    }
  };
  add(a, b);
  add(b, a);
  if (!all.empty() || a.contains("properties") || b.contains("properties")) merged["properties"] = all;
  if (!a.contains("additionalProperties") && !b.contains("additionalProperties")) return;
  const SchemaJson ours = others(a), theirs = others(b);
  merged["additionalProperties"] = ours == true                       ? theirs
                                   : theirs == true                   ? ours
                                   : ours == false || theirs == false ? SchemaJson(false)
                                                                      : both(ours, theirs);
}

bool SchemaMerger::are_disjoint(const SchemaJson& a, const SchemaJson& b, const SchemaPlace& place) {
  if (a.is_boolean() || b.is_boolean()) return true;  // flattened: false
  if (a.contains("enum") && b.contains("enum")) return !shares_constant(a["enum"], b["enum"]);
  if (a.contains("enum")) return types_exclude(a, b);
  if (b.contains("enum")) return types_exclude(b, a);
  if (!a.contains("type") || !b.contains("type")) return false;
  const JsonTypes shared = *types_of(a) & *types_of(b);
  if (shared.empty()) return true;
  if (shared.to_json() != SchemaJson::array({"object"}) || ++depth_ > max_merge_depth) return false;
  const auto exclude = [&](const SchemaJson& from, const SchemaJson& to) {
    if (!from.contains("required")) return false;
    return std::any_of(from["required"].begin(), from["required"].end(), [&](const SchemaJson& required) {
      const std::string name = required.get<std::string>();
      const auto named = [&](const SchemaJson& schema) {
        return schema.contains("properties") && schema["properties"].contains(name);
      };
      if (!named(to)) return to.contains("additionalProperties") && to["additionalProperties"] == false;
      return named(from) &&
             are_disjoint(flatten(from["properties"][name], place), flatten(to["properties"][name], place), place);
    });
  };
  const bool disjoint = exclude(a, b) || exclude(b, a);
  --depth_;
  return disjoint;
}

}  // namespace minimind
