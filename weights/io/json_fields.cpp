#include "weights/io/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "weights/io/error.h"
#include "weights/io/json_depth.h"
#include "weights/io/mapped_file.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_file_size = std::size_t{64} << 20;

}  // namespace

Json read_json_object(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > max_file_size) {
    throw Error(fmt::format("{}: holds {} bytes; at most {} are read", path, bytes.size(), max_file_size));
  }
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  try {
    Json json = Json::parse(text, text + bytes.size(), limited_depth(path));
    if (!json.is_object()) throw Error(fmt::format("{}: found {}, expected a JSON object", path, describe(json)));
    return json;
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: is not valid JSON at byte {} of {}; copy it again", path, error.byte, bytes.size()));
  }
}

JsonFields::JsonFields(const Json& object, std::string path, std::string name)
    : object_(object), path_(std::move(path)), name_(std::move(name)) {
  if (!object.is_object()) {
    throw Error(fmt::format("{}: {}: found {}, expected a JSON object", path_, name_, describe(object)));
  }
}

const Json& JsonFields::get(std::string_view key) const {
  static const Json null;
  const auto field = object_.find(key);
  return field == object_.end() ? null : *field;
}

JsonFields JsonFields::object(std::string_view key) const {
  return JsonFields(get(key), path_, name_of(key));
}

bool JsonFields::flag(std::string_view key, std::optional<bool> if_absent) const {
  if (if_absent && !object_.contains(key)) return *if_absent;
  const Json& value = get(key);
  if (!value.is_boolean()) fail(key, "true or false");
  return value.get<bool>();
}

std::string JsonFields::text(std::string_view key) const {
  if (!get(key).is_string()) fail(key, "a string");
  return get(key).get<std::string>();
}

std::optional<std::string> JsonFields::optional_text(std::string_view key) const {
  if (get(key).is_null()) return std::nullopt;
  if (!get(key).is_string()) fail(key, "a string or null");
  return get(key).get<std::string>();
}

void JsonFields::allow_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) fail(key, "no such field: its meaning is unknown");
  }
}

void JsonFields::fail(std::string_view key, std::string_view wanted) const {
  throw Error(fmt::format("{}: {}: found {}, expected {}", path_, name_of(key),
                          object_.contains(key) ? describe(get(key)) : "nothing", wanted));
}

std::string JsonFields::name_of(std::string_view key) const {
  const bool plain = !key.empty() && key.size() <= 64 &&
                     std::all_of(key.begin(), key.end(), [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
  const std::string shown = plain ? std::string(key) : quote(key);
  return name_.empty() ? shown : name_ + "." + shown;
}

std::string describe(const Json& value) {
  if (value.is_string()) return quote(value.get_ref<const std::string&>());
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) {
    const auto type = value.find("type");
    return type != value.end() && type->is_string() ? "an object of type " + describe(*type) : "an object";
  }
  return value.dump();
}

}  // namespace minimind
