#include "tools/options/option_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"
#include "weights/tensor/dtype.h"

namespace minimind {
namespace {

// Returns why this is not a whole number in the range.
std::string whole_number_error(const std::string& value, std::uint64_t least, std::uint64_t most) {
  const std::string expected = fmt::format("expected a whole number from {} to {}", least, most);
  if (value.empty()) return fmt::format("the value is empty, {}", expected);
  if (is_digits(value)) {
    const auto number = number_in<std::uint64_t>(value);
    return fmt::format("{} is too {}, {}", value, number && *number < least ? "small" : "large", expected);
  }
  if (value.front() == '-' && is_digits(value.substr(1))) return fmt::format("{} is too small, {}", value, expected);
  constexpr double exact = 0x1p53;
  const auto meant = number_in<double>(value);
  const bool is_whole = meant && *meant == std::floor(*meant) && *meant >= static_cast<double>(least) &&
                        *meant <= std::min(static_cast<double>(most), exact);
  return fmt::format("{} is not a whole number, expected one from {} to {}{}", quote(value), least, most,
                     is_whole ? fmt::format("; write {:.0f}", *meant) : "");
}

// Returns our own name of a type; `given` in lower case if it is unknown.
std::string canonical_type(const std::string& given) {
  static const std::map<std::string, std::string> names{{"fp32", "f32"},     {"float32", "f32"}, {"float", "f32"},
                                                        {"fp16", "f16"},     {"float16", "f16"}, {"half", "f16"},
                                                        {"bfloat16", "bf16"}};
  std::string name = lower_case(given);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name.starts_with("torch.")) name.erase(0, std::string_view("torch.").size());
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

// Returns a value outside CLI11 as its check leaves it. Throws UsageError naming `option`.
std::string checked(const std::string& option, std::string value, const OptionCheck& check) {
  const std::string error = check(value);
  if (!error.empty()) throw UsageError(fmt::format("{}: {}", option, error));
  return value;
}

}  // namespace

std::string a_folder(const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) return "";
  return fmt::format("{} is not a folder, expected one that exists", quote(path));
}

std::string a_number(const std::string& value) {
  const auto number = number_in<double>(value);
  if (number && std::isfinite(*number)) return "";
  return value.empty() ? "the value is empty, expected a number such as 0.85"
                       : fmt::format("{} is not a number, expected one such as 0.85", quote(value));
}

std::string not_negative(const std::string& value) {
  const std::string error = a_number(value);
  if (!error.empty()) return error;
  return *number_in<double>(value) >= 0 ? "" : fmt::format("{} is negative, expected 0 or more", value);
}

OptionCheck whole_number(std::uint64_t least, std::uint64_t most) {
  return [least, most](std::string& value) {
    const auto number = is_digits(value) ? number_in<std::uint64_t>(value) : std::nullopt;
    if (!number || *number < least || *number > most) return whole_number_error(value, least, most);
    value = std::to_string(*number);
    return std::string();
  };
}

std::vector<std::string> parse_list(const std::string& text, const std::string& option) {
  if (text.empty()) throw UsageError(fmt::format("{}: the value is empty", option));
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, end - at);
    if (part.empty()) throw UsageError(fmt::format("{} {}: a value is empty", option, quote(text)));
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
      throw UsageError(fmt::format("{} {}: {} is repeated", option, quote(text), quote(part)));
    }
    parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

std::vector<std::size_t> parse_counts(const std::string& text, const std::string& option, std::size_t least,
                                      std::size_t most) {
  std::vector<std::size_t> counts;
  for (const std::string& part : parse_list(text, option)) {
    const std::size_t count = *number_in<std::size_t>(checked(option, part, whole_number(least, most)));
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) {
      throw UsageError(fmt::format("{} {}: {} is repeated", option, quote(text), count));
    }
    counts.push_back(count);
  }
  return counts;
}

OptionWords one_of(std::vector<std::string> names) {
  const auto check = [names](std::string& value) {
    const bool known = std::find(names.begin(), names.end(), value) != names.end();
    return known ? std::string() : unknown_choice(value, names);
  };
  return {std::move(names), check};
}

OptionWords type_name(std::vector<std::string> types) {
  const auto check = [types](std::string& value) {
    const std::string name = canonical_type(value);
    if (std::find(types.begin(), types.end(), name) == types.end()) {
      const bool only_in_memory = name == name_of(DType::q8_r);
      return only_in_memory ? fmt::format("{} is for weights in memory only, expected {}", name, alternatives(types))
                            : unknown_choice(value, types);
    }
    value = name;
    return std::string();
  };
  return {std::move(types), check};
}

std::string parse_type_name(const std::string& option, const std::string& given,
                            const std::vector<std::string>& types) {
  return checked(option, given, type_name(types).check);
}

void require_two_files(const std::string& option, const std::string& path, const std::string& other_option,
                       const std::string& other_path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto canonical = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, failed), failed);
  };
  if (canonical(path) != canonical(other_path)) return;
  throw UsageError(fmt::format("{} and {} are both {}; name two different files", option, other_option, path));
}

}  // namespace minimind
