#include "weights/gguf/metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

#include "weights/base/quote.h"

namespace minimind {
namespace {

constexpr std::size_t longest_text = 72;
constexpr std::size_t longest_list = 8;

std::string shown_scalar(double value, GgufType type) {
  return fmt::format("{}", as_meant(value, type));
}

std::string shown_scalar(const std::string& value, GgufType) {
  if (value.size() <= longest_text) return quote(value);
  std::size_t end = longest_text;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0u) == 0x80u) --end;  // not inside a character
  return fmt::format("{}... ({} bytes)", quote(value.substr(0, end)), value.size());
}

template <class Number>
std::string shown_scalar(Number value, GgufType) {
  return fmt::format("{}", value);
}

template <class Scalar>
std::string shown_data(const Scalar& scalar, GgufType type) {
  return shown_scalar(scalar, type);
}

template <class List>
std::string shown_list(const List& list, GgufType type) {
  if (list.size() > longest_list) return fmt::format("{} of {}", list.size(), name_of(type));
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) text += (i > 0 ? ", " : "") + shown_scalar(list[i], type);
  return "[" + text + "]";
}

template <class Element>
std::string shown_data(const std::vector<Element>& list, GgufType type) {
  return shown_list(list, type);
}

template <class Wide>
std::string shown_data(const GgufNumbers<Wide>& list, GgufType type) {
  return shown_list(list, type);
}

}  // namespace

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
  set(std::move(key), {GgufType::i32, GgufNumbers<std::int64_t>(values)});
}

std::string shown(const GgufValue& value) {
  return std::visit([&](const auto& data) { return shown_data(data, value.type); }, value.data);
}

double as_meant(double value, GgufType type) {
  return type == GgufType::f32 ? std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr) : value;
}

}  // namespace minimind
