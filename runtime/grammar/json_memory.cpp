#include "runtime/grammar/json_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/grammar/work.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"
#include "weights/io/json_place.h"
#include "weights/io/sha256.h"

namespace minimind {
namespace {

constexpr int most_levels = 1000;
constexpr std::size_t longest_kept = 128;
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

// Returns a JSON text, which may end within a value, without the whitespace between its parts.
std::string without_space(std::string_view text) {
  std::string result;
  JsonPlace place = JsonPlace::between;
  for (const char byte : text) {
    if (!is_space(place, byte)) result += byte;
    place = after(place, byte);
  }
  return result;
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
  for (; entries_.size() > mark.entries; entries_.pop_back()) {
    const auto known = by_text_.find(key_of(entries_.back()));
    known->second = entries_.back().alike;
    if (known->second == 0) by_text_.erase(known);
  }
}

JsonMemory::Scope JsonMemory::open(Scope outer, std::size_t at) {
  const auto scope = static_cast<Scope>(scopes_.size());
  scopes_.push_back({outer, scope, 0, at});
  return scope;
}

JsonMemory::Scope JsonMemory::begin(Scope scope, std::size_t at) {
  Level level = scopes_[scope];
  level.begin = at;
  scopes_.push_back(level);
  return static_cast<Scope>(scopes_.size() - 1);
}

// Returns true if the entry is the last one or before it.
bool JsonMemory::has(std::uint32_t last, std::uint32_t wanted) const {
  while (entries_[last].place > entries_[wanted].place) {
    const std::uint32_t far = entries_[last].far_before;
    last = entries_[far].place >= entries_[wanted].place ? far : entries_[last].before;
  }
  return last == wanted;
}

JsonMemory::Scope JsonMemory::add(Scope scope, std::string text, std::size_t end) {
  Level level = scopes_[scope];
  const auto known = by_text_.find({level.opened, text});
  const std::uint32_t alike = known == by_text_.end() ? 0 : known->second;
  for (std::uint32_t entry = alike; entry != 0; entry = entries_[entry].alike) {
    if (has(level.last, entry)) return repeated;
  }
  const Entry& before = entries_[level.last];
  const Entry& far = entries_[before.far_before];
  // Two links of one length before it become one, as the digits of a skew-binary number do.
  const bool joins = before.place - far.place == far.place - entries_[far.far_before].place;
  const std::uint32_t far_before = joins ? far.far_before : level.last;
  entries_.push_back(
      {std::move(text), level.last, far_before, before.place + 1, alike, level.opened, level.begin, end});
  level.last = static_cast<std::uint32_t>(entries_.size() - 1);
  by_text_[key_of(entries_.back())] = level.last;
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
  const std::string_view written = text.substr(scopes_[scope].begin);
  compared_ += written.size();
  if (compared_ > most_compared) {
    throw TooMuchWork(fmt::format(
        "the items of arrays with uniqueItems have over {} bytes, those within others counted again, expected at most "
        "that; nest such arrays less, or shorten the text",
        most_compared));
  }
  std::string item = canonical(written);
  // An item within items is a part of the texts of them all.
  if (item.size() > longest_kept) item = sha256_of(item);  // which is not JSON
  return add(scope, std::move(item), text.size());
}

std::vector<std::string> JsonMemory::repetitions(Scope scope, std::string_view text, std::size_t& bytes_left) const {
  std::vector<std::string> found;
  const Level& level = scopes_[scope];
  if (!has_items(scope) || text.size() - level.begin > bytes_left) return found;
  bytes_left -= text.size() - level.begin;
  const std::string begun = without_space(text.substr(level.begin));
  for (std::uint32_t at = level.last; at != 0; at = entries_[at].before) {
    const Entry& entry = entries_[at];
    if (entry.end - entry.begin > bytes_left) break;
    bytes_left -= entry.end - entry.begin;
    const std::string item = without_space(text.substr(entry.begin, entry.end - entry.begin));
    if (item.starts_with(begun)) found.push_back(item.substr(begun.size()));
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace minimind
