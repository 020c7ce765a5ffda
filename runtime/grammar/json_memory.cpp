#include "runtime/grammar/json_memory.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace minimind {
namespace {

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
  const nlohmann::json value = nlohmann::json::parse("\"" + name + "\"", nullptr, false);
  return add(scope, value.is_string() ? value.get<std::string>() : name);
}

JsonMemory::Scope JsonMemory::add_item(Scope scope, std::string_view text) {
  const std::string_view item = text.substr(scopes_[scope].begin);
  nlohmann::json value = nlohmann::json::parse(item.begin(), item.end(), nullptr, false);
  if (value.is_discarded()) return add(scope, std::string(item));
  normalize_numbers(value);
  return add(scope, value.dump());
}

}  // namespace minimind
