#include "runtime/text/python_float.h"

#include <array>
#include <charconv>
#include <cmath>

namespace minimind {

std::string python_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const double magnitude = std::fabs(number);
  // Python writes an exponent when it is below -4 or above 15.
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                     scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer.data(), written.ptr);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace minimind
