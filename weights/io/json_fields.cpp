#include "weights/io/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/quote.h"
#include "weights/io/json_builder.h"
#include "weights/io/mistaken_file.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_file_size = std::size_t{64} << 20;
constexpr int max_depth = 16;

// What the values of a text may take.
constexpr std::size_t most_memory(std::string_view text) {
  return (std::size_t{64} << 20) + 4 * text.size();
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const std::string& source, int most_levels, std::string_view wanted) {
  return JsonBuilder<Json>(text, source, {most_levels, most_memory(text), wanted}).build();
}

template Json parse_json(std::string_view, const std::string&, int, std::string_view);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, int, std::string_view);

void read_json_members(std::string_view text, const std::string& source, int most_levels,
                       const std::function<void(const std::string& name, const Json& value)>& use) {
  JsonBuilder<Json>(text, source, {most_levels, most_memory(text), "a JSON object", false}, use).build();
}

template <class Json>
std::string dump_json(const Json& value, int indent, InvalidUtf8 invalid) {
  using Errors = typename Json::error_handler_t;
  return value.dump(indent, ' ', false, invalid == InvalidUtf8::refuse ? Errors::strict : Errors::replace);
}

template std::string dump_json(const Json&, int, InvalidUtf8);
template std::string dump_json(const nlohmann::ordered_json&, int, InvalidUtf8);

Json parse_json_object(std::string_view text, const std::string& source) {
  Json json = parse_json<Json>(text, source, max_depth, "a JSON object");
  if (!json.is_object()) throw Error(fmt::format("{}: is {}, expected a JSON object", source, describe(json)));
  return json;
}

Json read_json_object(const std::string& path) {
  return parse_json_object(open_input(path)->read_text(max_file_size), path);
}

JsonFields::JsonFields(const Json& object, std::string path, std::string name)
    : object_(object), path_(std::move(path)), name_(std::move(name)) {
  if (!object.is_object()) {
    throw Error(fmt::format("{}: {} is {}, expected a JSON object", path_, name_, describe(object)));
  }
}

const Json& JsonFields::get(std::string_view key) const {
  static const Json null;
  used_.emplace(key);
  const auto field = object_.find(key);
  return field == object_.end() ? null : *field;
}

JsonFields JsonFields::object(std::string_view key) const {
  if (!get(key).is_object()) fail(key, "a JSON object");
  return JsonFields(get(key), path_, name_of(key));
}

bool JsonFields::flag(std::string_view key, std::optional<bool> if_absent) const {
  const Json& value = get(key);
  if (if_absent && !object_.contains(key)) return *if_absent;
  if (!value.is_boolean()) fail(key, "true or false");
  return value.get<bool>();
}

std::string JsonFields::text(std::string_view key) const {
  const Json& value = get(key);
  if (!value.is_string()) fail(key, "a string");
  return value.get<std::string>();
}

std::vector<std::size_t> JsonFields::sizes(std::string_view key) const {
  const Json& value = get(key);
  const auto is_size = [](const Json& size) { return size.is_number_unsigned(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_size)) {
    fail(key, "an array of whole numbers, 0 or more each");
  }
  return value.get<std::vector<std::size_t>>();
}

// Returns the first of `names` that is present and not null, or an empty name.
std::string_view JsonFields::find(Names names) const {
  std::string_view found;
  for (const std::string_view name : names) {
    const Json& value = get(name);
    if (value.is_null()) continue;
    if (!found.empty() && get(found) != value) {
      fail(name, fmt::format("the same as {} = {}", found, describe(get(found))));
    }
    if (found.empty()) found = name;
  }
  return found;
}

std::optional<std::size_t> JsonFields::optional_size(Names names, std::size_t largest) const {
  const std::string_view key = find(names);
  if (key.empty()) return std::nullopt;
  const Json& value = get(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest) {
    fail(key, fmt::format("a whole number from 0 to {}", largest));
  }
  return value.get<std::size_t>();
}

std::optional<double> JsonFields::optional_positive(Names names) const {
  const std::string_view key = find(names);
  if (key.empty()) return std::nullopt;
  const Json& value = get(key);
  if (!value.is_number() || !(value.get<double>() > 0) || !(value.get<double>() < 1e30)) fail(key, "a positive number");
  return value.get<double>();
}

std::optional<bool> JsonFields::optional_flag(Names names) const {
  const std::string_view key = find(names);
  if (key.empty()) return std::nullopt;
  return flag(key);
}

std::optional<std::string> JsonFields::optional_text(Names names) const {
  const std::string_view key = find(names);
  if (key.empty()) return std::nullopt;
  if (!get(key).is_string()) fail(key, "a string or null");
  return get(key).get<std::string>();
}

std::optional<JsonFields> JsonFields::optional_object(Names names) const {
  const std::string_view key = find(names);
  if (key.empty()) return std::nullopt;
  return object(key);
}

void JsonFields::allow_only(Names known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) fail(key, "no such field: its meaning is unknown");
  }
}

std::vector<std::string> JsonFields::unused() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!used_.contains(key)) keys.push_back(key);
  }
  return keys;
}

void JsonFields::fail(std::string_view key, std::string_view wanted) const {
  throw Error(fmt::format("{}: {} is {}, expected {}", path_, name_of(key),
                          object_.contains(key) ? describe(get(key)) : "missing", wanted));
}

std::string JsonFields::name_of(std::string_view key) const {
  const bool plain = !key.empty() && key.size() <= 64 &&
                     std::all_of(key.begin(), key.end(), [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
  const std::string shown = plain ? std::string(key) : quote(key);
  return name_.empty() ? shown : name_ + "." + shown;
}

std::string describe(const Json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_object() && value.value("type", Json()).is_string()) {
    return "an object of type " + describe(value["type"]);
  }
  if (value.size() <= longest) {
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() <= longest) return text;
  }
  return value.is_array() ? fmt::format("an array of {}", value.size()) : "an object";
}

}  // namespace minimind
