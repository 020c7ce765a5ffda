#include "tools/openai/body_fields.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/openai/request_error.h"
#include "weights/base/quote.h"

namespace minimind {
namespace {

constexpr std::size_t most_short_texts = 64, longest_short_text = 1000;

std::string shown(const ChatJson& value) {
  constexpr std::size_t longest = 200;
  if (value.is_structured()) return std::string(kind_of(value));
  const std::string text = json_line(value);
  return text.size() <= longest ? text : std::string(kind_of(value));
}

}  // namespace

BodyFields::BodyFields(const ChatJson& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

const ChatJson* BodyFields::find(const std::string& name) {
  known_.insert(name);
  const auto field = object_.find(name);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

std::optional<double> BodyFields::number(const std::string& name, double least, double most) {
  const ChatJson* const value = find(name);
  if (!value) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) fail(name, fmt::format("a number from {} to {}", least, most));
  return number;
}

std::optional<std::uint64_t> BodyFields::whole(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const ChatJson* const value = find(name);
  if (!value) return std::nullopt;
  const bool is_whole = value->is_number_integer() && *value >= 0;  // also -0
  const bool in_range = is_whole && value->get<std::uint64_t>() >= least && value->get<std::uint64_t>() <= most;
  if (!in_range) fail(name, fmt::format("a whole number from {} to {}", least, most));
  return value->get<std::uint64_t>();
}

void BodyFields::read(const SamplingParameter& parameter, const std::string& name, SamplingOptions& sampling) {
  const ChatJson* const value = find(name);
  if (!value) return;
  const bool counts = std::holds_alternative<std::size_t* (*)(SamplingOptions&)>(parameter.value);
  const bool is_off = name == "top_k" && *value == -1;
  const bool is_number = counts ? value->is_number_integer() : value->is_number();
  const double number = is_off ? 0 : is_number ? value->get<double>() : NAN;
  if (!parameter.fits(number)) {
    fail(name, fmt::format("{} {}", counts ? "a whole number," : "a number,", parameter.range()));
  }
  parameter.set(sampling, number);
}

void BodyFields::read_sampling(SamplingOptions& sampling) {
  for (const SamplingParameter& parameter : sampling_parameters) {
    const std::string name(parameter.name), alias(parameter.alias);
    read(parameter, name, sampling);
    if (alias.empty()) continue;
    const double named = parameter.of(sampling);
    read(parameter, alias, sampling);
    if (!find(name) || !find(alias) || parameter.of(sampling) == named) continue;
    throw RequestError(fmt::format("{}{} is {}, but {}{} is {}, expected one of them", prefix_, name, named, prefix_,
                                   alias, parameter.of(sampling)),
                       prefix_ + name);
  }
}

std::optional<bool> BodyFields::flag(const std::string& name) {
  const ChatJson* const value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) fail(name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> BodyFields::text(const std::string& name) {
  const ChatJson* const value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail(name, "a string");
  return value->get<std::string>();
}

std::vector<std::string> BodyFields::short_texts(const std::string& name) {
  const ChatJson* const value = find(name);
  if (!value) return {};
  const std::size_t count = value->is_array() ? value->size() : 1;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count && count <= most_short_texts; ++i) {
    const ChatJson& text = value->is_array() ? (*value)[i] : *value;
    const bool fits = text.is_string() && !text.get_ref<const std::string&>().empty() &&
                      text.get_ref<const std::string&>().size() <= longest_short_text;
    if (!fits) break;
    texts.push_back(text.get<std::string>());
  }
  if (texts.size() == count) return texts;
  fail(name, fmt::format("a string or a list of at most {} strings, none of them empty or over {} bytes",
                         most_short_texts, longest_short_text));
}

const ChatJson* BodyFields::object(const std::string& name) {
  const ChatJson* const value = find(name);
  if (value && !value->is_object()) fail(name, "an object");
  return value;
}

void BodyFields::require(const std::string& name, const ChatJson& only) {
  const ChatJson* const value = find(name);
  if (value && *value != only) fail(name, json_line(only) + ", because anything else is not supported");
}

void BodyFields::reject_the_rest() const {
  for (const auto& [name, value] : object_.items()) {
    if (!value.is_null() && !known_.contains(name)) {
      throw RequestError(fmt::format("{}{} is not a field that is supported", prefix_, quote(name)), prefix_ + name,
                         "unsupported_parameter");
    }
  }
}

void BodyFields::fail(const std::string& name, const std::string& expected) const {
  throw RequestError(fmt::format("{}{} is {}, expected {}", prefix_, name, shown(object_.at(name)), expected),
                     prefix_ + name);
}

}  // namespace minimind
