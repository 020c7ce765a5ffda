#include "weights/gguf/metadata_text.h"

#include <fmt/core.h>

#include <cstdlib>
#include <variant>
#include <vector>

#include "weights/io/quote.h"

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

template <class Element>
std::string shown_data(const std::vector<Element>& list, GgufType type) {
  if (list.size() > longest_list) return fmt::format("{} of {}", list.size(), name_of(type));
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Element element = list[i];
    text += (i > 0 ? ", " : "") + shown_scalar(element, type);
  }
  return "[" + text + "]";
}

}  // namespace

std::string shown(const GgufValue& value) {
  return std::visit([&](const auto& data) { return shown_data(data, value.type); }, value.data);
}

double as_meant(double value, GgufType type) {
  return type == GgufType::f32 ? std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr) : value;
}

}  // namespace minimind
