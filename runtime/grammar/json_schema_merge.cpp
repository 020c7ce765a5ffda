#include "runtime/grammar/json_schema_merge.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "weights/io/quote.h"

namespace minimind {
namespace {

constexpr std::size_t max_depth = 100;
constexpr std::size_t max_work = 2'000'000;

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

// What "%41" and "~1" in a reference stand for.
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

// Constants of `a` that are of the types of `b`: none, where they are known to be others.
bool types_exclude(const SchemaJson& a, const SchemaJson& b) {
  const auto types = types_of(b);
  if (!b.contains("type") || !types) return false;
  return std::none_of(a["enum"].begin(), a["enum"].end(), [&](const SchemaJson& value) { return types->hold(value); });
}

}  // namespace

const SchemaJson& SchemaMerger::resolve(const std::string& reference, const SchemaPlace& place) const {
  if (reference != "#" && !reference.starts_with("#/")) {
    place.fail(fmt::format("{} is not supported; only \"#\" and \"#/...\", in the same file, are",
                           minimind::quoted(reference)));
  }
  const SchemaJson* found = &root_;
  for (std::size_t begin = 1; found && begin < reference.size();) {
    const std::size_t end = std::min(reference.find('/', begin + 1), reference.size());
    found = child(*found, unescaped(std::string_view(reference).substr(begin + 1, end - begin - 1), place));
    begin = end;
  }
  if (!found) place.fail(fmt::format("there is nothing at {}", minimind::quoted(reference)));
  if (!found->is_object() && !found->is_boolean())
    place.fail(fmt::format("{} is no schema", minimind::quoted(reference)));
  return *found;
}

void SchemaMerger::charge(const SchemaJson& schema, const SchemaPlace& place) {
  work_ += size_of(schema);
  if (work_ > max_work) place.fail("the schema grows too large once its references and allOf are merged");
}

SchemaJson SchemaMerger::flatten(const SchemaJson& schema, const SchemaPlace& place) {
  if (schema.is_boolean()) return schema.get<bool>() ? SchemaJson::object() : SchemaJson(false);
  if (++depth_ > max_depth) place.fail("its references and allOf lead to themselves, or are nested too deeply");
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
    place.fail("prefixItems and items of several schemas that all have to hold cannot be merged");
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
    if (types.empty()) place.fail("no type fulfils all the schemas that have to hold");
    mine = types.to_json();
  } else if (name == "enum") {
    SchemaJson kept = SchemaJson::array();
    for (const SchemaJson& constant : mine) {
      if (contains(value, constant)) kept.push_back(constant);
    }
    if (kept.empty()) place.fail("no constant fulfils all the schemas that have to hold");
    mine = kept;
  } else if (name == "required") {
    for (const SchemaJson& property : value) {
      if (!contains(mine, property)) mine.push_back(property);
    }
  } else if (name == "items" && mine.is_object() && value.is_object()) {
    mine = both(mine, value);
  } else {
    place.fail(fmt::format("{} is given by several schemas that all have to hold, and cannot be merged",
                           minimind::quoted(name)));
  }
}

// additionalProperties is about the properties that its own schema does not name.
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
                        minimind::quoted(name)));
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
  if (shared.to_json() != SchemaJson::array({"object"}) || ++depth_ > max_depth) return false;
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
