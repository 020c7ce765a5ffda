#include "runtime/json_schema/schema_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/grammar/work.h"
#include "runtime/json_schema/pattern.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"
#include "weights/io/number_text.h"

namespace minimind {
namespace {

constexpr int most_levels_read = 200;
constexpr std::size_t longest_pointer = 1000;  // of those in messages, of which each schema has one
constexpr std::size_t longest_uri = 8192;      // of a schema, against which those of the schemas within are resolved

// Keywords that say nothing about what is valid and that authors do not expect to.
constexpr std::array<std::string_view, 22> plain_annotations{"$schema",
                                                             "$id",
                                                             "id",
                                                             "$comment",
                                                             "$anchor",
                                                             "$dynamicAnchor",
                                                             "$vocabulary",
                                                             "title",
                                                             "description",
                                                             "default",
                                                             "examples",
                                                             "deprecated",
                                                             "readOnly",
                                                             "writeOnly",
                                                             "$defs",
                                                             "definitions",
                                                             "contentEncoding",
                                                             "contentMediaType",
                                                             "contentSchema",
                                                             "$recursiveAnchor",
                                                             "nullable",
                                                             "format"};

// Keywords that are read, and the first draft that has each; the last, if a later one dropped it.
struct Keyword {
  std::string_view name;
  SchemaDraft first = SchemaDraft::draft4;
  SchemaDraft last = SchemaDraft::draft2020;
};
constexpr std::array<Keyword, 44> keywords{{
    {"type"},
    {"enum"},
    {"const", SchemaDraft::draft6},
    {"minimum"},
    {"maximum"},
    {"exclusiveMinimum"},
    {"exclusiveMaximum"},
    {"multipleOf"},
    {"minLength"},
    {"maxLength"},
    {"pattern"},
    {"items"},
    {"prefixItems", SchemaDraft::draft2020},
    {"additionalItems", SchemaDraft::draft4, SchemaDraft::draft2019},
    {"minItems"},
    {"maxItems"},
    {"uniqueItems"},
    {"contains", SchemaDraft::draft6},
    {"minContains", SchemaDraft::draft2019},
    {"maxContains", SchemaDraft::draft2019},
    {"properties"},
    {"patternProperties"},
    {"additionalProperties"},
    {"required"},
    {"minProperties"},
    {"maxProperties"},
    {"propertyNames", SchemaDraft::draft6},
    {"dependencies", SchemaDraft::draft4, SchemaDraft::draft7},
    {"dependentRequired", SchemaDraft::draft2019},
    {"dependentSchemas", SchemaDraft::draft2019},
    {"allOf"},
    {"anyOf"},
    {"oneOf"},
    {"not"},
    {"if", SchemaDraft::draft7},
    {"then", SchemaDraft::draft7},
    {"else", SchemaDraft::draft7},
    {"$ref"},
    {"$dynamicRef", SchemaDraft::draft2020},
    {"$recursiveRef", SchemaDraft::draft2019, SchemaDraft::draft2019},
    {"unevaluatedProperties", SchemaDraft::draft2019},
    {"unevaluatedItems", SchemaDraft::draft2019},
    {"extends", SchemaDraft::draft2020, SchemaDraft::draft4},
    {"disallow", SchemaDraft::draft2020, SchemaDraft::draft4},
}};

// Without $schema, older spellings are read as well.
bool is_read(const Keyword& keyword, SchemaDraft draft, bool draft_stated) {
  const bool known = keyword.first <= draft && draft <= keyword.last;
  return known || (!draft_stated && keyword.first <= keyword.last);
}

const Keyword* keyword_of(std::string_view name) {
  const auto* const keyword =
      std::find_if(keywords.begin(), keywords.end(), [&](const Keyword& known) { return known.name == name; });
  return keyword == keywords.end() ? nullptr : keyword;
}

template <class... Texts>
bool is_one_of(std::string_view text, Texts... texts) {
  return ((text == texts) || ...);
}

// The draft of a metaschema, whose URI has its name; json-schema.org/schema is that of the latest draft.
std::optional<SchemaDraft> draft_of(std::string_view uri) {
  const auto has = [&](std::string_view part) { return uri.find(part) != std::string_view::npos; };
  if (has("draft-04")) return SchemaDraft::draft4;
  if (has("draft-05") || has("draft-06")) return SchemaDraft::draft6;
  if (has("draft-07")) return SchemaDraft::draft7;
  if (has("2019-09")) return SchemaDraft::draft2019;
  if (has("2020-12") || has("//json-schema.org/schema")) return SchemaDraft::draft2020;
  return std::nullopt;
}

std::string unescaped_pointer(std::string_view part) {
  std::string result;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '~' && i + 1 < part.size()) {
      result += part[++i] == '1' ? '/' : '~';
    } else {
      result += part[i];
    }
  }
  return result;
}

// A fragment as it is shown in messages.
std::string_view brief(std::string_view fragment) {
  return fragment.size() > longest_pointer ? "/..." : fragment;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (const auto byte = escape ? hexadecimal(text.substr(i + 1, 2)) : std::nullopt) {
      result += static_cast<char>(*byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

struct Uri {
  std::string scheme, authority, path, query;  // with their delimiters, except the path
};

Uri split_uri(std::string_view uri) {
  Uri parts;
  const std::size_t colon = uri.find(':'), slash = uri.find_first_of("/?#");
  if (colon != std::string_view::npos && colon > 0 && colon < slash) {
    parts.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    const std::size_t end = std::min(uri.find_first_of("/?#", 2), uri.size());
    parts.authority = uri.substr(0, end);
    uri.remove_prefix(end);
  }
  const std::size_t query = std::min(uri.find('?'), uri.size());
  parts.path = uri.substr(0, query);
  parts.query = uri.substr(query);
  return parts;
}

std::string without_dots(const std::string& path) {
  std::vector<std::string> kept;
  bool folder = false;
  for (std::size_t at = path.starts_with('/') ? 1 : 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    folder = part == "." || part == "..";
    if (part == ".." && !kept.empty()) kept.pop_back();
    if (!folder) kept.push_back(part);
    at = end + 1;
  }
  std::string result;
  for (const std::string& part : kept) result += (result.empty() && !path.starts_with('/') ? "" : "/") + part;
  return folder ? result + "/" : result;
}

}  // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const Uri from = split_uri(base);
  Uri to = split_uri(reference);
  if (!to.scheme.empty()) return to.scheme + to.authority + to.path + to.query;
  to.scheme = from.scheme;
  if (to.authority.empty()) {
    to.authority = from.authority;
    if (to.path.empty()) {
      to.path = from.path;
      if (to.query.empty()) to.query = from.query;
    } else if (!to.path.starts_with('/')) {
      const std::size_t slash = from.path.rfind('/');
      const std::string folder =
          slash == std::string::npos ? (from.authority.empty() ? "" : "/") : from.path.substr(0, slash + 1);
      to.path = without_dots(folder + to.path);
    } else {
      to.path = without_dots(to.path);
    }
  }
  return to.scheme + to.authority + to.path + to.query;
}

SchemaReader::Place SchemaReader::Place::at(std::string_view key) const {
  constexpr std::string_view cut = "/...";
  if (pointer.size() + key.size() > longest_pointer)
    return {resource, pointer.ends_with(cut) ? pointer : pointer + std::string(cut)};
  std::string escaped(key);
  replace_all(escaped, "~", "~0");
  replace_all(escaped, "/", "~1");
  return {resource, pointer + "/" + escaped};
}

namespace {

constexpr std::string_view draft4_uri = "http://json-schema.org/draft-04/schema";

// What it says of a schema's keywords.
constexpr std::string_view draft4_metaschema = R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"object",
"definitions":{
  "schemaArray":{"type":"array","minItems":1,"items":{"$ref":"#"}},
  "positiveInteger":{"type":"integer","minimum":0},
  "positiveIntegerDefault0":{"$ref":"#/definitions/positiveInteger"},
  "simpleTypes":{"enum":["array","boolean","integer","null","number","object","string"]},
  "stringArray":{"type":"array","items":{"type":"string"},"minItems":1,"uniqueItems":true}},
"properties":{
  "id":{"type":"string"},"$schema":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"default":{},
  "multipleOf":{"type":"number","minimum":0,"exclusiveMinimum":true},
  "maximum":{"type":"number"},"exclusiveMaximum":{"type":"boolean"},
  "minimum":{"type":"number"},"exclusiveMinimum":{"type":"boolean"},
  "maxLength":{"$ref":"#/definitions/positiveInteger"},"minLength":{"$ref":"#/definitions/positiveIntegerDefault0"},
  "pattern":{"type":"string","format":"regex"},
  "additionalItems":{"anyOf":[{"type":"boolean"},{"$ref":"#"}]},
  "items":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/schemaArray"}]},
  "maxItems":{"$ref":"#/definitions/positiveInteger"},"minItems":{"$ref":"#/definitions/positiveIntegerDefault0"},
  "uniqueItems":{"type":"boolean"},
  "maxProperties":{"$ref":"#/definitions/positiveInteger"},
  "minProperties":{"$ref":"#/definitions/positiveIntegerDefault0"},
  "required":{"$ref":"#/definitions/stringArray"},
  "additionalProperties":{"anyOf":[{"type":"boolean"},{"$ref":"#"}]},
  "definitions":{"type":"object","additionalProperties":{"$ref":"#"}},
  "properties":{"type":"object","additionalProperties":{"$ref":"#"}},
  "patternProperties":{"type":"object","additionalProperties":{"$ref":"#"}},
  "dependencies":{"type":"object",
    "additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/stringArray"}]}},
  "enum":{"type":"array","minItems":1,"uniqueItems":true},
  "type":{"anyOf":[{"$ref":"#/definitions/simpleTypes"},
    {"type":"array","items":{"$ref":"#/definitions/simpleTypes"},"minItems":1,"uniqueItems":true}]},
  "format":{"type":"string"},
  "allOf":{"$ref":"#/definitions/schemaArray"},"anyOf":{"$ref":"#/definitions/schemaArray"},
  "oneOf":{"$ref":"#/definitions/schemaArray"},"not":{"$ref":"#"}},
"dependencies":{"exclusiveMaximum":["maximum"],"exclusiveMinimum":["minimum"]}})";

}  // namespace

SchemaReader::SchemaReader(SchemaNodes& nodes, const SchemaJson& document, const std::string& source,
                           const std::map<std::string, SchemaJson>& references)
    : nodes_(nodes), source_(source) {
  std::vector<std::pair<std::string, const SchemaJson*>> documents{{"", &document}};
  for (const auto& [uri, json] : references) documents.emplace_back(uri, &json);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto [uri, json] = documents[i];
    Resource resource;
    resource.uri = uri.substr(0, uri.find('#'));
    resource.root = json;
    resource.draft = resources_.empty() ? SchemaDraft::draft2020 : resources_.front().draft;
    by_uri_[resource.uri] = resources_.size();
    resources_.push_back(resource);
    const std::size_t own = resources_.size() - 1;
    find_resources(*json, own);
    // Old schemas of schemas refer to that of their draft.
    if (!std::exchange(names_draft4_, false) || i + 1 < documents.size() || by_uri_.contains(std::string(draft4_uri))) {
      continue;
    }
    static const auto draft4 = parse_json<SchemaJson>(draft4_metaschema, "draft-04", 16, "a JSON Schema");
    documents.emplace_back(draft4_uri, &draft4);
  }
}

// Finds the parts with an $id and the anchors: first those of schemas, and then those in keywords that are unknown,
// which may refer to themselves but do not replace others. An $id as a value of `enum` and so on is not one.
void SchemaReader::find_resources(const SchemaJson& document, std::size_t own) {
  std::vector<Unsearched> pending{{&document, own, 0, false}}, unknown;
  while (!pending.empty() || !unknown.empty()) {
    if (pending.empty()) pending.swap(unknown);
    const Unsearched next = pending.back();
    pending.pop_back();
    const SchemaJson& value = *next.value;
    if (next.depth > most_levels_read || !value.is_structured()) continue;
    const std::size_t resource =
        value.is_object() && !next.named ? start_resource(value, next.resource) : next.resource;
    // In order, so that of equal ones the first counts.
    for (auto element = value.rbegin(); element != value.rend(); ++element) {
      const std::string_view key = value.is_object() && !next.named ? std::string_view(element.key()) : "";
      if (is_one_of(key, "enum", "const", "default", "examples")) continue;
      const bool names =
          is_one_of(key, "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions");
      const bool is_known = key.empty() || names || key == "contentSchema" || keyword_of(key) != nullptr;
      (is_known ? pending : unknown).push_back({&*element, resource, next.depth + 1, names});
    }
  }
}

// Returns the draft that the root of a resource states.
std::optional<SchemaDraft> SchemaReader::stated_draft(const SchemaJson& root, const Resource& resource) const {
  const auto stated = root.find("$schema");
  if (stated == root.end()) return std::nullopt;
  const auto draft = stated->is_string() ? draft_of(stated->get<std::string>()) : std::nullopt;
  if (!draft) {
    const std::string found = stated->is_string() ? quote(stated->get<std::string>()) : stated->type_name();
    throw SchemaError(
        fmt::format("{}: {}#/$schema: is {}, expected the URI of draft-04, draft-06, draft-07, 2019-09 or 2020-12; "
                    "omit $schema to have the schema read as 2020-12",
                    source_, &resource == resources_.data() ? "" : resource.uri, found));
  }
  return draft;
}

// Returns the resource that a schema belongs to: its own, if it has an $id.
std::size_t SchemaReader::start_resource(const SchemaJson& value, std::size_t outer) {
  const auto text = [&](const char* key) {
    return value.contains(key) && value[key].is_string() ? value[key].get<std::string>() : std::string();
  };
  names_draft4_ = names_draft4_ || text("$ref").starts_with(draft4_uri);
  const bool whole = &value == resources_[outer].root;
  if (const auto draft = whole ? stated_draft(value, resources_[outer]) : std::nullopt) {
    resources_[outer].draft = *draft;
    resources_[outer].draft_stated = true;
  }
  const bool old = resources_[outer].draft == SchemaDraft::draft4;
  const std::string id = text(old ? "id" : "$id");
  const bool hidden = value.contains("$ref") && resources_[outer].draft < SchemaDraft::draft2019;
  const std::size_t hash = std::min(id.find('#'), id.size());
  std::size_t own = outer;
  if (hash > 0 && !hidden) {
    const std::string uri = uri_of(id.substr(0, hash), {&resources_[outer], "#"});
    if (whole) {
      resources_[outer].uri = uri;
    } else {
      Resource resource;
      resource.uri = uri;
      resource.root = &value;
      resource.draft = resources_[outer].draft;
      resource.draft_stated = resources_[outer].draft_stated;
      if (const auto draft = stated_draft(value, resource)) resource.draft = *draft;
      own = resources_.size();
      resources_.push_back(std::move(resource));
      resource_roots_[&value] = own;
    }
    by_uri_.try_emplace(uri, own);
  }
  if (hash + 1 < id.size() && !hidden) resources_[own].anchors.try_emplace(id.substr(hash + 1), &value);
  if (!text("$dynamicAnchor").empty()) resources_[own].dynamic.insert(text("$dynamicAnchor"));
  // $recursiveRef is always "#".
  const bool recursive = value.contains("$recursiveAnchor") && value["$recursiveAnchor"] == true;
  if (recursive && resources_[own].root == &value) resources_[own].dynamic.insert("");
  for (const char* key : {"$anchor", "$dynamicAnchor"}) {
    if (!text(key).empty()) resources_[own].anchors.try_emplace(text(key), &value);
  }
  return own;
}

void SchemaReader::fail(const Place& place, std::string_view reason) const {
  throw SchemaError(fmt::format("{}: {}{}: {}", source_, place.resource == resources_.data() ? "" : place.resource->uri,
                                place.pointer, reason));
}

void SchemaReader::ignore(std::string what) {
  if (known_ignored_.insert(what).second) nodes_.ignored_.push_back(std::move(what));
}

std::unique_ptr<SchemaNodes> read_schemas(const SchemaJson& document, const std::string& source,
                                          const std::map<std::string, SchemaJson>& references) {
  auto nodes = std::make_unique<SchemaNodes>(source);
  SchemaReader(*nodes, document, source, references).read();
  return nodes;
}

void SchemaReader::read() {
  nodes_.root_ = node_of(*resources_.front().root, {resources_.data(), "#"});
  while (!unread_.empty()) {
    const Unread next = unread_.back();
    unread_.pop_back();
    fill(next.id, *next.schema, {next.resource, nodes_[next.id].pointer});
  }
}

NodeId SchemaReader::node_of(const SchemaJson& schema, const Place& place) {
  if (schema.is_boolean()) return schema.get<bool>() ? nodes_.always() : nodes_.never();
  if (!schema.is_object()) {
    fail(place, fmt::format("is {}, expected a schema: an object, true or false", schema.type_name()));
  }
  const auto known = known_.find(&schema);
  if (known != known_.end()) return known->second;
  const auto own = resource_roots_.find(&schema);
  const Place inside = own == resource_roots_.end() ? place : Place{&resources_[own->second], "#"};
  SchemaNode node;
  node.pointer = inside.pointer;
  const NodeId id = nodes_.add(std::move(node));
  known_[&schema] = id;
  unread_.push_back({id, &schema, inside.resource});
  return id;
}

void SchemaReader::fill(NodeId id, const SchemaJson& schema, const Place& place) {
  SchemaNode node = nodes_.nodes_[id];
  node.evaluates = true;
  const bool only_reference = schema.contains("$ref") && place.resource->draft < SchemaDraft::draft2019;
  if (only_reference) {
    if (!schema["$ref"].is_string()) fail(place.at("$ref"), "expected a text");
    node.all_of.push_back(resolve(schema["$ref"].get<std::string>(), place.at("$ref")));
  } else {
    note_ignored(schema, place);
    for (const Read part : {&SchemaReader::read_types, &SchemaReader::read_constants, &SchemaReader::read_numbers,
                            &SchemaReader::read_strings, &SchemaReader::read_arrays, &SchemaReader::read_contains,
                            &SchemaReader::read_objects, &SchemaReader::read_dependencies, &SchemaReader::read_logic}) {
      (this->*part)(schema, place, node);
    }
  }
  spend(node.weight());
  nodes_.nodes_[id] = std::move(node);
}

void SchemaReader::note_ignored(const SchemaJson& schema, const Place& place) {
  for (const auto& [name, value] : schema.items()) {
    const Keyword* const keyword = keyword_of(name);
    if (keyword != nullptr) {
      if (!is_read(*keyword, place.resource->draft, place.resource->draft_stated)) ignore(name);
    } else if (std::find(plain_annotations.begin(), plain_annotations.end(), name) == plain_annotations.end()) {
      ignore(name);
    }
  }
}

// The value of a keyword, or null if it is missing or the draft does not have it.
const SchemaJson* SchemaReader::value_of(const SchemaJson& schema, const Place& place, std::string_view name) {
  const auto found = schema.find(name);
  if (found == schema.end()) return nullptr;
  const Keyword* const keyword = keyword_of(name);
  const bool known = keyword == nullptr || is_read(*keyword, place.resource->draft, place.resource->draft_stated);
  return known ? &*found : nullptr;
}

std::optional<std::size_t> SchemaReader::count(const SchemaJson& schema, const Place& place, const char* keyword) {
  const SchemaJson* const value = value_of(schema, place, keyword);
  if (value == nullptr) return std::nullopt;
  const bool whole = value->is_number() && value->get<double>() >= 0 && value->get<double>() < 1e15 &&
                     value->get<double>() == std::floor(value->get<double>());
  if (!whole) fail(place.at(keyword), fmt::format("is {}, expected a whole number from 0", dump_json(*value)));
  return static_cast<std::size_t>(value->get<double>());
}

std::vector<std::string> SchemaReader::names(const SchemaJson& value, const Place& place) {
  std::vector<std::string> result;
  if (!value.is_array()) fail(place, fmt::format("is {}, expected an array of names", value.type_name()));
  std::set<std::string_view> known;
  for (const SchemaJson& name : value) {
    if (!name.is_string()) fail(place, "expected an array of names");
    const auto& text = name.get_ref<const std::string&>();
    if (known.insert(text).second) result.push_back(text);
  }
  return result;
}

std::vector<NodeId> SchemaReader::schemas(const SchemaJson& value, const Place& place) {
  if (!value.is_array()) fail(place, fmt::format("is {}, expected an array of schemas", value.type_name()));
  std::vector<NodeId> result;
  for (std::size_t i = 0; i < value.size(); ++i) result.push_back(node_of(value[i], place.at(i)));
  return result;
}

// The schema that a keyword has, if it is there.
std::optional<NodeId> SchemaReader::schema_at(const SchemaJson& schema, const Place& place, std::string_view keyword) {
  const SchemaJson* const value = value_of(schema, place, keyword);
  return value != nullptr ? std::optional(node_of(*value, place.at(keyword))) : std::nullopt;
}

AutomatonId SchemaReader::pattern(const std::string& pattern, const Place& place) {
  try {
    return nodes_.automata_.cached("pattern " + pattern, [&] { return pattern_automaton(pattern); });
  } catch (const SchemaError&) {
    throw;
  } catch (const Error& error) {
    fail(place, error.what());
  }
}

void SchemaReader::read_types(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  const SchemaJson* const type = value_of(schema, place, "type");
  if (type == nullptr) return;
  static constexpr std::array<std::string_view, 6> type_names{"object", "array", "string", "number", "boolean", "null"};
  node.types = 0;
  bool any_number = false;
  const auto add = [&](const SchemaJson& name) {
    if (name == "integer") {
      node.types |= bit_of(JsonType::number);
      return;
    }
    const std::string* const text = name.get_ptr<const std::string*>();
    const auto* const known = text ? std::find(type_names.begin(), type_names.end(), *text) : type_names.end();
    if (known == type_names.end()) {
      fail(place.at("type"), fmt::format("is {}, expected object, array, string, number, integer, boolean or null",
                                         text ? quote(*text) : name.type_name()));
    }
    node.types |= static_cast<JsonTypes>(1U << static_cast<unsigned>(known - type_names.begin()));
    any_number = any_number || name == "number";
  };
  if (type->is_array()) {
    for (const SchemaJson& name : *type) add(name);
  } else {
    add(*type);
  }
  node.whole = (node.types & bit_of(JsonType::number)) != 0 && !any_number;
  const SchemaJson* const nullable = schema.contains("nullable") ? &schema["nullable"] : nullptr;
  // OpenAPI 3.0, whose schemas name no draft.
  if (nullable != nullptr && *nullable == true && !place.resource->draft_stated) node.types |= bit_of(JsonType::null);
  // In draft 4, 1.0 is not a whole number.
  if (node.whole && place.resource->draft == SchemaDraft::draft4) {
    node.numbers.push_back(
        nodes_.automata_.cached("plain integer", [] { return minimind::numbers(NumberTexts::plain_integer); }));
  }
}

Decimal SchemaReader::decimal(const SchemaJson& value, const Place& place) const {
  const auto text = number_text(value);
  if (!text) fail(place, fmt::format("is {}, expected a number", value.type_name()));
  const auto decimal = decimal_of(*text);
  if (!decimal) fail(place, "is too large");
  return *decimal;
}

// A node of these constants, none of which is an object or an array.
SchemaNode SchemaReader::scalars(const std::vector<const SchemaJson*>& values, const Place& place) {
  SchemaNode node;
  node.pointer = place.pointer;
  node.types = 0;
  node.true_too = node.false_too = false;
  std::vector<std::u32string> texts;
  std::vector<SpelledNumber> numbers;
  for (const SchemaJson* value : values) {
    if (value->is_string()) {
      node.types |= bit_of(JsonType::string);
      texts.push_back(code_points_of(value->get<std::string>()));
    } else if (const auto number = number_text(*value)) {
      node.types |= bit_of(JsonType::number);
      numbers.push_back({decimal(*value, place), *number});
    } else if (value->is_boolean()) {
      node.types |= bit_of(JsonType::boolean);
      (value->get<bool>() ? node.true_too : node.false_too) = true;
    } else {
      node.types |= bit_of(JsonType::null);
    }
  }
  if (!texts.empty()) node.strings.push_back(nodes_.automata_.add(Automaton::of_texts(std::move(texts))));
  if (!numbers.empty()) node.numbers.push_back(nodes_.automata_.add(numbers_equal(numbers)));
  if (!node.true_too && !node.false_too) node.true_too = node.false_too = true;
  return node;
}

NodeId SchemaReader::constant(const SchemaJson& value, const Place& place) {
  if (!value.is_structured()) return nodes_.add(scalars({&value}, place));
  SchemaNode node;
  node.pointer = place.pointer;
  if (value.is_array()) {
    node.types = bit_of(JsonType::array);
    for (const SchemaJson& element : value) node.prefix.push_back(constant(element, place));
    node.items = nodes_.never();
    node.min_items = value.size();
  } else {
    node.types = bit_of(JsonType::object);
    for (const auto& [name, element] : value.items()) {
      node.properties.emplace_back(name, constant(element, place));
      node.required.push_back(name);
    }
    node.additional = nodes_.never();
  }
  return nodes_.add(std::move(node));
}

void SchemaReader::read_constants(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  if (const SchemaJson* const value = value_of(schema, place, "const"))
    node.all_of.push_back(constant(*value, place.at("const")));
  const SchemaJson* const values = value_of(schema, place, "enum");
  if (values == nullptr) return;
  const Place at = place.at("enum");
  if (!values->is_array()) fail(at, fmt::format("is {}, expected an array of constants", values->type_name()));
  std::vector<const SchemaJson*> plain;
  std::vector<NodeId> alternatives;
  for (const SchemaJson& value : *values) {
    if (value.is_structured()) {
      alternatives.push_back(constant(value, at));
    } else {
      plain.push_back(&value);
    }
  }
  if (!plain.empty() || alternatives.empty()) alternatives.push_back(nodes_.add(scalars(plain, at)));
  if (alternatives.size() == 1) {
    node.all_of.push_back(alternatives.front());
  } else {
    node.any_of.push_back(std::move(alternatives));
  }
}

// In draft 4, exclusiveMinimum and exclusiveMaximum are flags.
void SchemaReader::read_bound(const SchemaJson& schema, const Place& place, const char* inclusive,
                              const char* exclusive, std::vector<NumberBound>& bounds) {
  const SchemaJson* const bound = value_of(schema, place, inclusive);
  const SchemaJson* const sharp = value_of(schema, place, exclusive);
  const bool flag = sharp != nullptr && sharp->is_boolean();
  if (bound != nullptr) bounds.push_back({decimal(*bound, place.at(inclusive)), flag && sharp->get<bool>()});
  if (sharp != nullptr && !flag) bounds.push_back({decimal(*sharp, place.at(exclusive)), true});
}

void SchemaReader::read_numbers(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  read_bound(schema, place, "minimum", "exclusiveMinimum", node.from);
  read_bound(schema, place, "maximum", "exclusiveMaximum", node.to);
  const SchemaJson* const divisor = value_of(schema, place, "multipleOf");
  if (divisor == nullptr) return;
  const Place at = place.at("multipleOf");
  Decimal value = decimal(*divisor, at);
  if (value.negative || value.is_zero()) fail(at, "expected a number above 0");
  if (value == Decimal{false, "1", 0}) {
    node.numbers.push_back(nodes_.automata_.cached("integer", [] { return minimind::numbers(NumberTexts::integer); }));
    return;
  }
  if (!least_common_multiple(value, value)) fail(at, "is not supported, expected a number of at most 15 digits");
  node.divisors.push_back(std::move(value));
}

void SchemaReader::read_strings(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  node.min_length = count(schema, place, "minLength").value_or(0);
  node.max_length = count(schema, place, "maxLength");
  if (const SchemaJson* const text = value_of(schema, place, "pattern")) {
    if (!text->is_string()) fail(place.at("pattern"), "expected a text");
    node.strings.push_back(pattern(text->get<std::string>(), place.at("pattern")));
  }
  const SchemaJson* const name = value_of(schema, place, "format");
  if (name == nullptr) return;
  if (!name->is_string()) fail(place.at("format"), "expected a text");
  const std::string format = name->get<std::string>();
  const AutomatonId automaton =
      nodes_.automata_.cached("format " + format, [&] { return format_automaton(format).value_or(Automaton()); });
  if (nodes_.automata_[automaton].empty()) return ignore(fmt::format("format {}", quote(format)));
  node.strings.push_back(automaton);
  constexpr std::size_t longest_host_name = 253;
  if (format == "hostname") node.max_length = std::min(node.max_length.value_or(longest_host_name), longest_host_name);
}

void SchemaReader::read_arrays(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  node.min_items = count(schema, place, "minItems").value_or(0);
  node.max_items = count(schema, place, "maxItems");
  if (const SchemaJson* const unique = value_of(schema, place, "uniqueItems")) {
    if (!unique->is_boolean()) fail(place.at("uniqueItems"), "expected true or false");
    node.unique = unique->get<bool>();
  }
  const SchemaJson* const items = value_of(schema, place, "items");
  const bool old_form = items != nullptr && items->is_array();
  const char* const prefix = old_form ? "items" : "prefixItems";
  const char* const rest = old_form ? "additionalItems" : "items";
  if (const SchemaJson* const value = value_of(schema, place, prefix)) node.prefix = schemas(*value, place.at(prefix));
  node.items = schema_at(schema, place, rest);
  node.unevaluated_items = schema_at(schema, place, "unevaluatedItems");
}

void SchemaReader::read_contains(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  const auto item = schema_at(schema, place, "contains");
  if (!item) return;
  node.contains.push_back(
      {*item, 0, count(schema, place, "minContains").value_or(1), count(schema, place, "maxContains")});
}

void SchemaReader::read_objects(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  const auto object = [&](const char* keyword) -> const SchemaJson* {
    const SchemaJson* const value = value_of(schema, place, keyword);
    if (value != nullptr && !value->is_object()) {
      fail(place.at(keyword), fmt::format("is {}, expected an object of schemas", value->type_name()));
    }
    return value;
  };
  if (const SchemaJson* const properties = object("properties")) {
    node.lists_properties = true;
    for (const auto& [name, value] : properties->items()) {
      node.properties.emplace_back(name, node_of(value, place.at("properties").at(name)));
    }
  }
  if (const SchemaJson* const patterns = object("patternProperties")) {
    for (const auto& [text, value] : patterns->items()) {
      const Place at = place.at("patternProperties").at(text);
      node.patterns.emplace_back(pattern(text, at), node_of(value, at));
    }
  }
  node.additional = schema_at(schema, place, "additionalProperties");
  if (const auto names = schema_at(schema, place, "propertyNames")) node.names.push_back(*names);
  if (const SchemaJson* const value = value_of(schema, place, "required"))
    node.required = names(*value, place.at("required"));
  node.min_properties = count(schema, place, "minProperties").value_or(0);
  node.max_properties = count(schema, place, "maxProperties");
  node.unevaluated = schema_at(schema, place, "unevaluatedProperties");
}

void SchemaReader::read_dependencies(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  for (const char* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const SchemaJson* const value = value_of(schema, place, keyword);
    if (value == nullptr) continue;
    const Place at = place.at(keyword);
    if (!value->is_object()) fail(at, fmt::format("is {}, expected an object", value->type_name()));
    for (const auto& [name, needed] : value->items()) {
      if (needed.is_array()) {
        node.dependent_required.emplace_back(name, names(needed, at.at(name)));
      } else if (needed.is_string()) {
        node.dependent_required.emplace_back(name, std::vector<std::string>{needed.get<std::string>()});
      } else {
        node.dependent.emplace_back(name, node_of(needed, at.at(name)));
      }
    }
  }
}

void SchemaReader::read_logic(const SchemaJson& schema, const Place& place, SchemaNode& node) {
  for (const std::string keyword : {"$ref", "$dynamicRef", "$recursiveRef"}) {
    const SchemaJson* const reference = value_of(schema, place, keyword.c_str());
    if (reference == nullptr) continue;
    if (!reference->is_string()) fail(place.at(keyword), "expected a text");
    const std::string uri = reference->get<std::string>();
    const Place at = place.at(keyword);
    node.all_of.push_back(keyword == "$ref" ? resolve(uri, at) : resolve_dynamic(uri, at));
  }
  if (const SchemaJson* const parts = value_of(schema, place, "allOf")) {
    const std::vector<NodeId> all = schemas(*parts, place.at("allOf"));
    node.all_of.insert(node.all_of.end(), all.begin(), all.end());
  }
  if (const SchemaJson* const parts = value_of(schema, place, "anyOf"))
    node.any_of.push_back(schemas(*parts, place.at("anyOf")));
  if (const SchemaJson* const parts = value_of(schema, place, "oneOf"))
    node.one_of.push_back(schemas(*parts, place.at("oneOf")));
  if (const auto part = schema_at(schema, place, "not")) node.none_of.push_back(*part);
  const auto condition = schema_at(schema, place, "if");
  if (!condition) return;
  const auto then = schema_at(schema, place, "then");
  node.ifs.push_back({*condition, then, schema_at(schema, place, "else")});
}

namespace {

std::string fragment_of(const std::string& reference) {
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  return hash < reference.size() ? percent_decoded(reference.substr(hash + 1)) : "";
}

}  // namespace

// Every reference and every $id is resolved against a URI that may be longer than itself.
std::string SchemaReader::uri_of(const std::string& reference, const Place& place) const {
  std::string uri = resolve_uri(place.resource->uri, reference);
  if (uri.size() > longest_uri) {
    throw SchemaError(fmt::format("{}: {}: the URI {} has {} bytes, expected at most {}; shorten $id", source_,
                                  place.pointer, quote(uri), uri.size(), longest_uri));
  }
  spend(uri.size());
  return uri;
}

const SchemaReader::Resource& SchemaReader::resource_named(const std::string& reference, const Place& place) const {
  const std::string uri = reference.substr(0, reference.find('#'));
  if (uri.empty()) return *place.resource;
  const auto known = by_uri_.find(uri_of(uri, place));
  if (known == by_uri_.end()) {
    fail(place, fmt::format("refers to {}, which is not in the file; give its file for this URI", quote(reference)));
  }
  return resources_[known->second];
}

NodeId SchemaReader::resolve(const std::string& reference, const Place& place) {
  const Resource* const resource = &resource_named(reference, place);
  const std::string fragment = fragment_of(reference);
  Place found{resource, "#"};
  const SchemaJson* target = find(found, fragment);
  // Many schemas have an id within that their references ignore.
  if (target == nullptr && resource == place.resource) {
    found = {resources_.data(), "#"};
    target = find(found, fragment);
  }
  if (target == nullptr) fail(place, fmt::format("refers to {}, which does not exist", quote(reference)));
  return node_of(*target, found);
}

// The target of a dynamic reference is the anchor of this name in the first resource with one that a value is checked
// by. That is the document, if it has one, because every value is checked by it first.
NodeId SchemaReader::resolve_dynamic(const std::string& reference, const Place& place) {
  const Resource& resource = resource_named(reference, place);
  const std::string anchor = fragment_of(reference);
  if (!resource.dynamic.contains(anchor)) return resolve(reference, place);
  spend(resources_.size());
  const auto has = [&](const Resource& other) { return other.dynamic.contains(anchor); };
  const Resource& document = resources_.front();
  Place found{&document, "#"};
  if (has(document)) return node_of(*find(found, anchor), found);
  if (std::count_if(resources_.begin(), resources_.end(), has) > 1) {
    fail(place, fmt::format("is not supported, because {} has several targets, none of them in the document itself",
                            quote(reference)));
  }
  return resolve(reference, place);
}

// The value of a key; null if the object does not have it. Many references look into the same large objects.
const SchemaJson* SchemaReader::member(const SchemaJson& object, const std::string& key) const {
  auto& known = members_[&object];
  if (known.empty()) {
    for (auto member = object.begin(); member != object.end(); ++member) known.emplace(member.key(), &*member);
  }
  const auto found = known.find(key);
  return found == known.end() ? nullptr : found->second;
}

// `place` is the root of a resource, and becomes the place of what is found, which may be in a resource within that.
const SchemaJson* SchemaReader::find(Place& place, const std::string& fragment) const {
  const Resource& resource = *place.resource;
  place.pointer += brief(fragment);
  if (fragment.empty()) return resource.root;
  if (!fragment.starts_with('/')) {
    const auto anchor = resource.anchors.find(fragment);
    return anchor == resource.anchors.end() ? nullptr : anchor->second;
  }
  const SchemaJson* at = resource.root;
  for (std::size_t from = 1; from <= fragment.size();) {
    const std::size_t end = std::min(fragment.find('/', from), fragment.size());
    const std::string key = unescaped_pointer(fragment.substr(from, end - from));
    if (at->is_object()) {
      at = member(*at, key);
      if (at == nullptr) return nullptr;
    } else if (at->is_array() && !key.empty() && key.size() < 9 && std::all_of(key.begin(), key.end(), ::isdigit) &&
               std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else {
      return nullptr;
    }
    const auto inner = resource_roots_.find(at);
    if (inner != resource_roots_.end()) {
      place = {&resources_[inner->second], fmt::format("#{}", brief(std::string_view(fragment).substr(end)))};
    }
    from = end + 1;
  }
  return at;
}

}  // namespace minimind
