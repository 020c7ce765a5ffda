#include "weights/io/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/io/json_builder.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_file_size = std::size_t{64} << 20;
constexpr int max_depth = 16;

// What the values of a text may take.
constexpr std::size_t most_memory(std::string_view text) {
  return (std::size_t{64} << 20) + 4 * text.size();
}

template <class Json>
std::string description(const Json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_string()) return quote(value.template get_ref<const std::string&>());
  if (value.is_object() && value.value("type", Json()).is_string()) {
    return "an object of type " + description(value["type"]);
  }
  if (value.size() <= longest) {
    const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() <= longest) return text;
  }
  return value.is_array() ? fmt::format("an array of {}", value.size()) : "an object";
}

Json require_object(Json json, const std::string& source) {
  if (!json.is_object()) throw Error(fmt::format("{}: is {}, expected a JSON object", source, description(json)));
  return json;
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const std::string& source, int most_levels, std::string_view wanted,
                bool keeps_large) {
  return JsonBuilder<Json>(text, source, {most_levels, most_memory(text), wanted, true, keeps_large}).build();
}

template Json parse_json(std::string_view, const std::string&, int, std::string_view, bool);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, int, std::string_view, bool);

void read_json_members(std::string_view text, const std::string& source, int most_levels,
                       const std::function<void(const std::string& name, const Json& value)>& use) {
  const auto use_member = [&](const std::string&, const std::string& name, const Json& value) { use(name, value); };
  JsonBuilder<Json>(text, source, {most_levels, most_memory(text), "a JSON object", false}, use_member).build();
}

Json read_json_inside(const std::string& path, std::string_view member, const UseInside& use) {
  const std::string text = open_input(path)->read_text(max_file_size);
  return require_object(
      JsonBuilder<Json>(text, path, {max_depth, most_memory(text), "a JSON object", false}, use, member).build(), path);
}

template <class Json>
std::string dump_json(const Json& value, int indent, InvalidUtf8 invalid) {
  using Errors = typename Json::error_handler_t;
  return value.dump(indent, ' ', false, invalid == InvalidUtf8::refuse ? Errors::strict : Errors::replace);
}

template std::string dump_json(const Json&, int, InvalidUtf8);
template std::string dump_json(const nlohmann::ordered_json&, int, InvalidUtf8);

Json parse_json_object(std::string_view text, const std::string& source) {
  return require_object(parse_json<Json>(text, source, max_depth, "a JSON object"), source);
}

Json read_json_object(const std::string& path) {
  return parse_json_object(open_input(path)->read_text(max_file_size), path);
}

template <class Json>
BasicJsonFields<Json>::BasicJsonFields(const Json& object, std::string source, std::string name)
    : object_(object), source_(std::move(source)), name_(std::move(name)) {
  if (object.is_object()) return;
  throw Error(fmt::format("{}{}{} is {}, expected a JSON object", source_, source_.empty() ? "" : ": ", name_,
                          description(object)));
}

template <class Json>
const Json* BasicJsonFields<Json>::find(std::string_view key) const {
  const Json& value = get(key);
  return value.is_null() ? nullptr : &value;
}

template <class Json>
const Json& BasicJsonFields<Json>::get(std::string_view key) const {
  static const Json null;
  used_.emplace(key);
  const auto field = object_.find(key);
  return field == object_.end() ? null : *field;
}

// Returns the first of `names` that is present and not null, or an empty name.
template <class Json>
std::string_view BasicJsonFields<Json>::present(const Names& names) const {
  std::string_view found;
  for (const std::string_view name : names.all()) {
    const Json* const value = find(name);
    if (!value) continue;
    if (!found.empty() && get(found) != *value) {
      fail(name, fmt::format("the same as {} = {}", found, shown(get(found))));
    }
    if (found.empty()) found = name;
  }
  return found;
}

template <class Json>
std::optional<std::uint64_t> BasicJsonFields<Json>::whole(const Names& names, std::uint64_t least,
                                                          std::uint64_t most) const {
  const std::string_view key = present(names);
  if (key.empty()) return std::nullopt;
  const Json& value = get(key);
  const bool is_whole = value.is_number_integer() && value >= 0;  // also -0
  const bool in_range =
      is_whole && value.template get<std::uint64_t>() >= least && value.template get<std::uint64_t>() <= most;
  if (!in_range) fail(key, fmt::format("a whole number from {} to {}", least, most));
  return value.template get<std::uint64_t>();
}

template <class Json>
std::optional<double> BasicJsonFields<Json>::positive(const Names& names) const {
  const std::string_view key = present(names);
  if (key.empty()) return std::nullopt;
  const double number = get(key).is_number() ? get(key).template get<double>() : 0;
  if (!(number >= 0x1p-126 && number < 1e30)) fail(key, "a positive number, at least 1.2e-38, the least of f32");
  return number;
}

template <class Json>
std::optional<bool> BasicJsonFields<Json>::flag(const Names& names) const {
  const std::string_view key = present(names);
  if (key.empty()) return std::nullopt;
  return required_flag(key);
}

template <class Json>
std::optional<std::string> BasicJsonFields<Json>::text(const Names& names) const {
  const std::string_view key = present(names);
  if (key.empty()) return std::nullopt;
  if (!get(key).is_string()) fail(key, "a string or null");
  return required_text(key);
}

template <class Json>
std::optional<BasicJsonFields<Json>> BasicJsonFields<Json>::object(const Names& names) const {
  const std::string_view key = present(names);
  if (key.empty()) return std::nullopt;
  return required_object(key);
}

template <class Json>
bool BasicJsonFields<Json>::required_flag(std::string_view key) const {
  if (!get(key).is_boolean()) fail(key, "true or false");
  return get(key).template get<bool>();
}

template <class Json>
std::string BasicJsonFields<Json>::required_text(std::string_view key) const {
  if (!get(key).is_string()) fail(key, "a string");
  return get(key).template get<std::string>();
}

template <class Json>
BasicJsonFields<Json> BasicJsonFields<Json>::required_object(std::string_view key) const {
  if (!get(key).is_object()) fail(key, "a JSON object");
  return BasicJsonFields(get(key), source_, name_of(key));
}

template <class Json>
std::vector<std::size_t> BasicJsonFields<Json>::required_sizes(std::string_view key) const {
  const Json& value = get(key);
  const auto is_size = [](const Json& size) {
    return size.is_number_unsigned() && std::in_range<std::size_t>(size.template get<std::uint64_t>());
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_size)) {
    fail(key, "an array of whole numbers, 0 or more each");
  }
  return value.template get<std::vector<std::size_t>>();
}

template <class Json>
bool BasicJsonFields<Json>::flag_or(std::string_view key, bool if_missing) const {
  used_.emplace(key);
  return object_.contains(key) ? required_flag(key) : if_missing;
}

template <class Json>
void BasicJsonFields<Json>::allow_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) fail(key, "no such field: its meaning is unknown");
  }
}

template <class Json>
std::vector<std::string> BasicJsonFields<Json>::unused(Nulls nulls) const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    const bool counts = nulls == Nulls::counted || !value.is_null();
    if (counts && !used_.contains(key)) keys.push_back(key);
  }
  return keys;
}

template <class Json>
void BasicJsonFields<Json>::fail(std::string_view key, std::string_view wanted) const {
  raise(fmt::format("{}{}{} is {}, expected {}", source_, source_.empty() ? "" : ": ", name_of(key),
                    object_.contains(key) ? shown(get(key)) : "missing", wanted),
        key);
}

template <class Json>
std::string BasicJsonFields<Json>::name_of(std::string_view key) const {
  const bool plain = !key.empty() && key.size() <= 64 &&
                     std::all_of(key.begin(), key.end(), [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
  const std::string shown = plain ? std::string(key) : quote(key);
  return name_.empty() ? shown : name_ + "." + shown;
}

template <class Json>
std::string BasicJsonFields<Json>::shown(const Json& value) const {
  return description(value);
}

template <class Json>
void BasicJsonFields<Json>::raise(const std::string& message, std::string_view key) const {
  throw_own(message, name_of(key));
  throw Error(message);
}

template <class Json>
void BasicJsonFields<Json>::throw_own(const std::string&, const std::string&) const {}

template class BasicJsonFields<nlohmann::json>;
template class BasicJsonFields<nlohmann::ordered_json>;

std::string describe(const Json& value) {
  return description(value);
}

}  // namespace minimind
