#include "runtime/generate/sampling_options.h"

#include <fmt/core.h>

namespace minimind {

double GenerationParameter::of(const GenerationParameters& parameters) const {
  // The functions only say where the value is.
  auto& changeable = const_cast<GenerationParameters&>(parameters);
  const auto* const real = std::get_if<Member<double>>(&value);
  return real ? *(*real)(changeable) : static_cast<double>(*std::get<Member<std::size_t>>(value)(changeable));
}

void GenerationParameter::set(GenerationParameters& parameters, double number) const {
  if (!fits(number)) throw ParameterError(name, fmt::format("is {}, expected {}", number, range()));
  if (const auto* const real = std::get_if<Member<double>>(&value)) {
    *(*real)(parameters) = number;
  } else {
    *std::get<Member<std::size_t>>(value)(parameters) = static_cast<std::size_t>(number);
  }
  if (of(parameters) != number) throw ParameterError(name, fmt::format("is {}, expected a whole one", number));
}

std::string GenerationParameter::range() const {
  return fmt::format("{}{} to {}", or_zero ? "0, or " : "", least, most);
}

}  // namespace minimind
