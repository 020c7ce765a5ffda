#include "weights/gguf/metadata.h"

#include <algorithm>
#include <utility>

namespace minimind {

std::string_view name_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
      return "u8";
    case GgufType::i8:
      return "i8";
    case GgufType::u16:
      return "u16";
    case GgufType::i16:
      return "i16";
    case GgufType::u32:
      return "u32";
    case GgufType::i32:
      return "i32";
    case GgufType::f32:
      return "f32";
    case GgufType::boolean:
      return "bool";
    case GgufType::string:
      return "string";
    case GgufType::array:
      return "array";
    case GgufType::u64:
      return "u64";
    case GgufType::i64:
      return "i64";
    case GgufType::f64:
      return "f64";
  }
  return "unknown";
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries_.end() ? nullptr : &found->second;
}

void GgufMetadata::set(std::string key, GgufValue value) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != entries_.end()) {
    found->second = std::move(value);
  } else {
    entries_.emplace_back(std::move(key), std::move(value));
  }
}

void GgufMetadata::set_u32(std::string key, std::uint32_t value) {
  set(std::move(key), {GgufType::u32, std::uint64_t{value}});
}

void GgufMetadata::set_f32(std::string key, float value) {
  set(std::move(key), {GgufType::f32, double{value}});
}

void GgufMetadata::set_bool(std::string key, bool value) {
  set(std::move(key), {GgufType::boolean, value});
}

void GgufMetadata::set_string(std::string key, std::string value) {
  set(std::move(key), {GgufType::string, std::move(value)});
}

void GgufMetadata::set_strings(std::string key, std::vector<std::string> values) {
  set(std::move(key), {GgufType::string, std::move(values)});
}

void GgufMetadata::set_i32s(std::string key, const std::vector<std::int32_t>& values) {
  set(std::move(key), {GgufType::i32, std::vector<std::int64_t>(values.begin(), values.end())});
}

}  // namespace minimind
