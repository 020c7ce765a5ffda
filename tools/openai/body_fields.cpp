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

}  // namespace

BodyFields::BodyFields(const ChatJson& object, std::string where) : ChatFields(object, std::move(where)) {}

void BodyFields::read(const SamplingParameter& parameter, const std::string& name, SamplingOptions& sampling) const {
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

void BodyFields::read_sampling(SamplingOptions& sampling) const {
  for (const SamplingParameter& parameter : sampling_parameters) {
    const std::string name(parameter.name), alias(parameter.alias);
    read(parameter, name, sampling);
    if (alias.empty()) continue;
    const double named = parameter.of(sampling);
    read(parameter, alias, sampling);
    if (!find(name) || !find(alias) || parameter.of(sampling) == named) continue;
    raise(fmt::format("{} is {}, but {} is {}, expected one of them", name_of(name), named, name_of(alias),
                      parameter.of(sampling)),
          name);
  }
}

std::vector<std::string> BodyFields::short_texts(const std::string& name) const {
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

const ChatJson* BodyFields::object(const std::string& name) const {
  const ChatJson* const value = find(name);
  if (value && !value->is_object()) fail(name, "an object");
  return value;
}

void BodyFields::require(const std::string& name, const ChatJson& only) const {
  const ChatJson* const value = find(name);
  if (value && *value != only) fail(name, json_line(only) + ", because anything else is not supported");
}

void BodyFields::reject_the_rest() const {
  const std::vector<std::string> names = unused(Nulls::ignored);
  if (names.empty()) return;
  const std::string place = where().empty() ? "" : where() + ".";
  throw RequestError(fmt::format("{}{} is not a field that is supported", place, quote(names.front())),
                     place + names.front(), "unsupported_parameter");
}

void BodyFields::throw_own(const std::string& message, const std::string& field) const {
  throw RequestError(message, field);
}

}  // namespace minimind
