#include "runtime/grammar/json_memory.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

constexpr int most_levels = 1000;
constexpr double exact_integers = 9007199254740992;  // a double has all whole numbers below it

// Makes equal numbers of equal type.
void normalize_numbers(nlohmann::json& value) {
  if (value.is_structured()) {
    for (nlohmann::json& element : value) normalize_numbers(element);
  }
  if (!value.is_number_float()) return;
  const double number = value.get<double>();
  if (std::abs(number) < exact_integers && number == std::floor(number)) value = static_cast<std::int64_t>(number);
}

// Returns a text that equal values share; of what is not JSON, the text itself.
std::string canonical(std::string_view text) {
  nlohmann::json value;
  try {
    value = parse_json<nlohmann::json>(text, "item", most_levels, "a JSON value");
  } catch (const Error&) {
    return std::string(text);
  }
  normalize_numbers(value);
  return dump_json(value, -1, InvalidUtf8::replace);
}

}  // namespace

void JsonMemory::forget(Mark mark) {
  scopes_.resize(mark.scopes);
  entries_.resize(mark.entries);
}

JsonMemory::Scope JsonMemory::open(Scope outer, std::size_t at) {
  scopes_.push_back({outer, 0, at});
  return static_cast<Scope>(scopes_.size() - 1);
}

JsonMemory::Scope JsonMemory::begin(Scope scope, std::size_t at) {
  Level level = scopes_[scope];
  level.begin = at;
  scopes_.push_back(level);
  return static_cast<Scope>(scopes_.size() - 1);
}

JsonMemory::Scope JsonMemory::add(Scope scope, std::string text) {
  Level level = scopes_[scope];
  for (std::uint32_t entry = level.last; entry != 0; entry = entries_[entry].before) {
    if (entries_[entry].text == text) return repeated;
  }
  entries_.push_back({std::move(text), level.last});
  level.last = static_cast<std::uint32_t>(entries_.size() - 1);
  scopes_.push_back(level);
  return static_cast<Scope>(scopes_.size() - 1);
}

JsonMemory::Scope JsonMemory::add_name(Scope scope, std::string_view text) {
  const std::string name(text.substr(scopes_[scope].begin));
  if (name.find('\\') == std::string::npos) return add(scope, name);
  const std::string quoted = canonical("\"" + name + "\"");
  return add(scope, quoted.substr(1, quoted.size() - 2));
}

JsonMemory::Scope JsonMemory::add_item(Scope scope, std::string_view text) {
  return add(scope, canonical(text.substr(scopes_[scope].begin)));
}

}  // namespace minimind
