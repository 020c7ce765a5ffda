#include "weights/gguf/metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t longest_text = 72;
constexpr std::size_t longest_list = 8;

std::string shown_scalar(double value, GgufType type) {
  return fmt::format("{}", as_meant(value, type));
}

std::string shown_scalar(std::string_view value, GgufType) {
  if (value.size() <= longest_text) return quote(value);
  std::size_t end = longest_text;
  while (end > 0 && !starts_character(value[end])) --end;  // not inside a character
  return fmt::format("{}... ({} bytes)", quote(value.substr(0, end)), value.size());
}

template <class Number>
requires std::is_arithmetic_v<Number> std::string shown_scalar(Number value, GgufType) {
  return fmt::format("{}", value);
}

template <class Data>
std::string shown_data(const Data& data, GgufType type) {
  if constexpr (std::is_arithmetic_v<Data> || std::is_same_v<Data, std::string>) {
    return shown_scalar(data, type);
  } else {
    if (data.size() > longest_list) return fmt::format("{} of {}", data.size(), name_of(type));
    std::string text;
    for (std::size_t i = 0; i < data.size(); ++i) text += (i > 0 ? ", " : "") + shown_scalar(data[i], type);
    return "[" + text + "]";
  }
}

}  // namespace

std::string_view name_of(GgufType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  const auto code = static_cast<std::size_t>(type);
  return code < std::size(names) ? names[code] : "unknown";
}

std::size_t GgufValue::size() const {
  return std::visit(
      []<typename Values>(const Values& values) -> std::size_t {
        if constexpr (requires { values.size(); }) return values.size();
        return 1;
      },
      data);
}

std::size_t GgufMetadata::place_of(std::string_view key) const {
  const auto place = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                      [&](std::size_t i, std::string_view of) { return entries_[i].first < of; });
  return static_cast<std::size_t>(place - by_key_.begin());
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const std::size_t place = place_of(key);
  const auto* const entry = place == by_key_.size() ? nullptr : &entries_[by_key_[place]];
  return entry && entry->first == key ? &entry->second : nullptr;
}

void GgufMetadata::set(std::string key, GgufValue value) {
  const std::size_t place = place_of(key);
  if (place < by_key_.size() && entries_[by_key_[place]].first == key) {
    entries_[by_key_[place]].second = std::move(value);
    return;
  }
  by_key_.insert(by_key_.begin() + static_cast<std::ptrdiff_t>(place), entries_.size());
  entries_.emplace_back(std::move(key), std::move(value));
}

const GgufValue* GgufFields::find(std::string_view key) const {
  used_.emplace(key);
  return metadata_.find(key);
}

std::optional<bool> GgufFields::flag(std::string_view key) const {
  const bool* const flag = get<bool>(key, "true or false");
  return flag ? std::optional(*flag) : std::nullopt;
}

std::optional<std::string> GgufFields::text(std::string_view key) const {
  const auto* const text = get<std::string>(key, "a string");
  return text ? std::optional(*text) : std::nullopt;
}

std::vector<std::int64_t> GgufFields::whole_numbers(std::string_view key, std::string_view wanted,
                                                    std::size_t most) const {
  const auto with_sign = [](std::uint64_t number) { return number > INT64_MAX ? -1 : std::int64_t(number); };
  const GgufValue* const value = find(key);
  if (!value) return {};
  if (const auto* const number = std::get_if<std::int64_t>(&value->data)) return {*number};
  if (const auto* const number = std::get_if<std::uint64_t>(&value->data)) return {with_sign(*number)};
  const auto* const with_signs = std::get_if<GgufNumbers<std::int64_t>>(&value->data);
  const auto* const numbers = with_signs ? nullptr : get<GgufNumbers<std::uint64_t>>(key, wanted);
  if ((with_signs ? with_signs->size() : numbers->size()) > most) fail(key, fmt::format("at most {} numbers", most));
  if (with_signs) return with_signs->widened();
  std::vector<std::int64_t> result(numbers->size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = with_sign((*numbers)[i]);
  return result;
}

std::vector<std::string> GgufFields::unused() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : metadata_.entries()) {
    if (!used_.contains(key)) keys.push_back(key);
  }
  return keys;
}

void GgufFields::fail(std::string_view key, std::string_view wanted) const {
  throw Error(message(key, wanted));
}

std::string GgufFields::message(std::string_view key, std::string_view wanted) const {
  const GgufValue* const value = metadata_.find(key);
  return fmt::format("{}: {} is {}, expected {}", source_, key, value ? shown(*value) : "missing", wanted);
}

std::string shown(const GgufValue& value) {
  return std::visit([&](const auto& data) { return shown_data(data, value.type); }, value.data);
}

double as_meant(double value, GgufType type) {
  return type == GgufType::f32 ? std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr) : value;
}

}  // namespace minimind
