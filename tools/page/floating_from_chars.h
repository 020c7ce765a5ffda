#pragma once

// LLVM's C++ library reads floating-point numbers with std::from_chars() only from version 20 on; that of emscripten is
// older. Included before every file that is compiled for the page.

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000

namespace std {

inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  // strtod() also takes a sign +, spaces before the number, and hexadecimal digits.
  constexpr string_view characters = "0123456789.+-eEinfatyINFATY";
  const string_view given(first, static_cast<size_t>(last - first));
  const string number(given.substr(0, given.find_first_not_of(characters)));
  char* end = nullptr;
  const double read = strtod(number.c_str(), &end);
  const auto size = end - number.c_str();
  if (size == 0 || number[0] == '+') return {first, errc::invalid_argument};
  value = read;
  return {first + size, errc()};
}

inline from_chars_result from_chars(const char* first, const char* last, float& value) {
  double number = 0;
  const from_chars_result result = from_chars(first, last, number);
  if (result.ec == errc()) value = static_cast<float>(number);
  return result;
}

}  // namespace std

#endif
