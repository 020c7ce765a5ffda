#include "runtime/grammar/json_schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/grammar/json_grammar.h"
#include "runtime/grammar/json_pattern.h"
#include "runtime/grammar/json_schema_keywords.h"
#include "weights/io/error.h"
#include "weights/io/json_fields.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Sequence = JsonGrammar::Sequence;
using RuleId = GrammarBuilder::RuleId;

constexpr std::size_t max_schema_size = std::size_t{1} << 20;
constexpr int max_file_depth = 100;
constexpr std::size_t max_subschema_depth = 200;

class SchemaCompiler {
 public:
  SchemaCompiler(const SchemaJson& root, const std::string& source)
      : source_(source), merger_(root, source), json_(builder_) {}

  Grammar compile() {
    const RuleId root = rule_of("#", {source_, "#"});
    while (!undefined_.empty()) {
      const auto [reference, rule] = undefined_.back();
      undefined_.pop_back();
      const SchemaPlace place{source_, reference};
      builder_.define(rule, {sequence_of(merger_.resolve(reference, place), place)});
    }
    return builder_.build(root);
  }

 private:
  RuleId rule_of(const std::string& reference, const SchemaPlace& place) {
    const auto known = rules_.find(reference);
    if (known != rules_.end()) return known->second;
    merger_.resolve(reference, place);
    const RuleId rule = builder_.declare(reference);
    undefined_.emplace_back(reference, rule);
    return rules_.emplace(reference, rule).first->second;
  }

  // A lone reference becomes a reference to its rule, so that schemas may be recursive; any other schema is expanded.
  Sequence sequence_of(const SchemaJson& schema, const SchemaPlace& place) {
    if (schema.is_boolean()) return schema.get<bool>() ? json_.value() : nothing_valid(place);
    check_keywords(schema, place);
    SchemaJson without_reference = schema;
    if (without_reference.erase("$ref") > 0 && !says_anything(without_reference)) {
      return builder_.reference(rule_of(schema["$ref"].get<std::string>(), place.at("$ref")));
    }
    return sequence_of_flat(merger_.flatten(schema, place), place);
  }

  Sequence sequence_of_flat(const SchemaJson& schema, const SchemaPlace& place) {
    if (schema.is_boolean()) nothing_valid(place);
    if (++depth_ > max_subschema_depth) place.fail("the schema is nested too deeply, or merging it never ends");
    Sequence result;
    if (schema.contains("anyOf")) {
      result = sequence_of_alternatives(schema, "anyOf", place);
    } else if (schema.contains("oneOf")) {
      result = sequence_of_alternatives(schema, "oneOf", place);
    } else if (schema.contains("enum")) {
      result = sequence_of_constants(schema, place);
    } else if (const auto types = types_of(schema)) {
      std::vector<Sequence> alternatives;
      for (std::size_t i = 0; i < json_type_names.size(); ++i) {
        const auto type = static_cast<JsonType>(i);
        if (types->has(type)) alternatives.push_back(sequence_of_type(type, schema, place));
      }
      result = builder_.choice(alternatives);
    } else {
      result = json_.value();
    }
    --depth_;
    return builder_.group(result);
  }

  Sequence sequence_of_alternatives(SchemaJson schema, const std::string& keyword, const SchemaPlace& place) {
    const SchemaJson parts = schema[keyword];
    schema.erase(keyword);
    std::vector<SchemaJson> flat;
    std::vector<Sequence> alternatives;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const SchemaPlace at = place.at(keyword).at(i);
      const bool alone = schema.empty();
      if (!alone || keyword == "oneOf") flat.push_back(merger_.merge(merger_.flatten(parts[i], at), schema, at));
      if (parts[i] == false || (!alone && flat.back() == false)) continue;
      alternatives.push_back(alone ? sequence_of(parts[i], at) : sequence_of_flat(flat.back(), at));
    }
    if (alternatives.empty()) nothing_valid(place);
    for (std::size_t i = 0; keyword == "oneOf" && i < flat.size(); ++i) {
      for (std::size_t j = i + 1; j < flat.size(); ++j) {
        if (merger_.are_disjoint(flat[i], flat[j], place)) continue;
        place.at(keyword).fail(
            fmt::format("values may be valid by both alternatives {} and {}, expected one for oneOf; "
                        "distinguish them by type, by constants or by a required property, "
                        "or use anyOf",
                        i, j));
      }
    }
    return builder_.choice(alternatives);
  }

  Sequence sequence_of_constants(const SchemaJson& schema, const SchemaPlace& place) {
    for (const auto& [name, value] : schema.items()) {
      if (name != "enum" && name != "type") {
        place.fail(fmt::format("{} next to enum or const is not supported", quote(name)));
      }
    }
    const JsonTypes types = types_of(schema).value_or(JsonTypes::all());
    std::vector<Sequence> alternatives;
    for (const SchemaJson& value : schema["enum"]) {
      if (types.hold(value)) alternatives.push_back(json_.literal(value));
    }
    if (alternatives.empty()) nothing_valid(place);
    return builder_.choice(alternatives);
  }

  Sequence sequence_of_type(JsonType type, const SchemaJson& schema, const SchemaPlace& place) {
    switch (type) {
      case JsonType::object:
        return object_sequence(schema, place);
      case JsonType::array:
        return array_sequence(schema, place);
      case JsonType::string:
        return string_sequence(schema, place);
      case JsonType::number:
      case JsonType::integer:
        return number_sequence(type == JsonType::integer, schema, place);
      case JsonType::boolean:
        return builder_.choice({builder_.literal("true"), builder_.literal("false")});
      case JsonType::null:
        break;
    }
    return builder_.literal("null");
  }

  // Properties that only `required` names follow additionalProperties, or are anything.
  std::vector<JsonProperty> properties_of(const SchemaJson& schema, const SchemaPlace& place,
                                          std::vector<std::string>& excluded) {
    const SchemaJson named = schema.value("properties", SchemaJson::object());
    const SchemaJson required = schema.value("required", SchemaJson::array());
    std::vector<JsonProperty> properties;
    for (const auto& [name, value] : named.items()) {
      const SchemaPlace at = place.at("properties").at(name);
      const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
      excluded.push_back(name);
      if (value == false && !is_required) continue;
      properties.push_back({name, sequence_of(value, at), is_required});
    }
    for (const SchemaJson& entry : required) {
      const std::string name = entry.get<std::string>();
      if (std::find(excluded.begin(), excluded.end(), name) != excluded.end()) continue;
      excluded.push_back(name);
      const SchemaJson other = schema.value("additionalProperties", SchemaJson(true));
      if (other == false) {
        place.at("required")
            .fail(
                fmt::format("requires {}, which is not in properties, and additionalProperties is false", quote(name)));
      }
      properties.push_back({name, sequence_of(other, place.at("additionalProperties")), true});
    }
    return properties;
  }

  Sequence object_sequence(const SchemaJson& schema, const SchemaPlace& place) {
    std::vector<std::string> excluded;
    const std::vector<JsonProperty> properties = properties_of(schema, place, excluded);
    const bool silent = properties.empty() && !schema.contains("properties");
    const SchemaJson other = schema.value("additionalProperties", SchemaJson(silent));
    std::optional<JsonOtherProperties> others;
    if (other != false) {
      const Sequence value = sequence_of(other, place.at("additionalProperties"));
      others = {value, std::move(excluded), 0, std::nullopt};
    }
    limit_properties(schema, place, properties, others);
    return object_of(json_, properties, others);
  }

  // Other names may be repeated, and then count once: so two different ones cannot be guaranteed.
  void limit_properties(const SchemaJson& schema, const SchemaPlace& place, const std::vector<JsonProperty>& properties,
                        std::optional<JsonOtherProperties>& others) {
    const auto required = static_cast<std::size_t>(std::count_if(
        properties.begin(), properties.end(), [](const JsonProperty& property) { return property.required; }));
    const auto min = count_of(schema, "minProperties"), max = count_of(schema, "maxProperties");
    const bool only_others = others && properties.empty();
    if (min > required) {
      if (!only_others || *min > 1) place.at("minProperties").fail("is more than the number of required properties");
      others->min = 1;
    }
    if (!max) return;
    if (only_others) {
      others->max = max;
      if (*max < others->min) nothing_valid(place);
    } else if (others || *max < properties.size()) {
      place.at("maxProperties").fail("is supported only if it excludes none of the properties");
    }
  }

  Sequence array_sequence(const SchemaJson& schema, const SchemaPlace& place) {
    const SchemaJson items = schema.value("items", SchemaJson());
    const bool old_form = items.is_array();
    const std::string prefix_keyword = old_form ? "items" : "prefixItems",
                      rest_keyword = old_form ? "additionalItems" : "items";
    const SchemaJson prefix = schema.value(prefix_keyword, SchemaJson::array());
    const std::size_t min = count_of(schema, "minItems").value_or(0);
    const auto max = count_of(schema, "maxItems");
    const auto first_false = static_cast<std::size_t>(std::find(prefix.begin(), prefix.end(), false) - prefix.begin());
    const std::size_t first = std::min(first_false, max.value_or(prefix.size()));
    const bool any_rest = prefix.empty() || min > prefix.size();
    SchemaJson rest = schema.value(rest_keyword, SchemaJson(any_rest));
    if (first < prefix.size()) rest = false;
    if ((max && min > *max) || (rest == false && min > first)) nothing_valid(place);
    std::vector<Sequence> parts{builder_.literal("[")};
    for (std::size_t i = 0; i < first; ++i) {
      if (i > 0) parts.push_back(json_.comma());
      parts.push_back(sequence_of(prefix[i], place.at(prefix_keyword).at(i)));
    }
    if (rest != false && max != first) {
      const Sequence item = builder_.group(sequence_of(rest, place.at(rest_keyword)));
      const Sequence another = GrammarBuilder::concatenate({json_.comma(), item});
      const auto left = [&](std::size_t count) { return std::max(count, first) - first; };
      const auto left_max = max ? std::optional(left(*max)) : std::nullopt;
      parts.push_back(first > 0 ? builder_.repeat(another, left(min), left_max) : json_.list(item, min, max));
    }
    parts.push_back(builder_.literal("]"));
    return GrammarBuilder::concatenate(parts);
  }

  Sequence string_sequence(const SchemaJson& schema, const SchemaPlace& place) {
    const auto min = count_of(schema, "minLength"), max = count_of(schema, "maxLength");
    const bool pattern = schema.contains("pattern"), format = schema.contains("format");
    if ((pattern && format) || ((pattern || format) && (min || max))) {
      place.fail("only one of pattern, format and a length (minLength, maxLength) is supported for a string");
    }
    if (pattern) return matching(schema["pattern"].get<std::string>(), place.at("pattern"));
    if (format) {
      const std::string name = schema["format"].get<std::string>();
      const auto its_pattern = pattern_of_format(name);
      if (!its_pattern) place.at("format").fail(fmt::format("the format {} is not supported", quote(name)));
      return matching(*its_pattern, place.at("format"));
    }
    if (max && min > max) nothing_valid(place);
    return json_.string(min.value_or(0), max);
  }

  Sequence matching(const std::string& pattern, const SchemaPlace& place) {
    try {
      return strings_with_match(json_, pattern);
    } catch (const Error& error) {
      place.fail(error.what());
    }
  }

  Sequence number_sequence(bool integer, const SchemaJson& schema, const SchemaPlace& place) {
    const NumberBounds bounds{bound_of(schema, "minimum", "exclusiveMinimum", true),
                              bound_of(schema, "maximum", "exclusiveMaximum", false)};
    if (!bounds.low && !bounds.high) return integer ? json_.integer() : json_.number();
    const auto range = integer ? integers_between(builder_, bounds) : numbers_between(builder_, bounds);
    if (!range) place.fail("no number of at most 15 digits, 6 of them after the point, is within its bounds");
    return *range;
  }

  // The stronger of the two bounds.
  static std::optional<NumberBounds::Bound> bound_of(const SchemaJson& schema, const char* inclusive,
                                                     const char* exclusive, bool larger_is_stronger) {
    const bool has_inclusive = schema.contains(inclusive), has_exclusive = schema.contains(exclusive);
    if (!has_inclusive && !has_exclusive) return std::nullopt;
    bool take_exclusive = has_exclusive;
    if (has_inclusive && has_exclusive && schema[inclusive] != schema[exclusive]) {
      take_exclusive = (schema[exclusive] > schema[inclusive]) == larger_is_stronger;
    }
    const SchemaJson& value = schema[take_exclusive ? exclusive : inclusive];
    const bool fits =
        value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() >> 63 == 0);
    return NumberBounds::Bound{fits ? Decimal{value.get<std::int64_t>(), 0} : decimal_of(value.get<double>()),
                               take_exclusive};
  }

  [[noreturn]] static Sequence nothing_valid(const SchemaPlace& place) {
    place.fail("no value is valid by this schema");
  }

  const std::string& source_;
  SchemaMerger merger_;
  GrammarBuilder builder_;
  JsonGrammar json_;
  std::map<std::string, RuleId> rules_;  // by reference
  std::vector<std::pair<std::string, RuleId>> undefined_;
  std::size_t depth_ = 0;
};

}  // namespace

Grammar json_schema_grammar(const SchemaJson& schema, const std::string& source) {
  try {
    if (!schema.is_object() && !schema.is_boolean()) SchemaPlace{source, "#"}.fail("expected a schema: a JSON object");
    return SchemaCompiler(schema, source).compile();
  } catch (const SchemaError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", source, error.what()));
  }
}

Grammar load_json_schema(const std::string& path) {
  const auto file = open_input(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > max_schema_size) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", path, bytes.size(), max_schema_size));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return json_schema_grammar(parse_json<SchemaJson>(text, path, max_file_depth, "a JSON Schema"), path);
}

}  // namespace minimind
