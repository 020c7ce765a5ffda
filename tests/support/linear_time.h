#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/cpu_seconds.h"
#include "weights/base/error.h"

namespace minimind {

// The sanitizers make everything some ten times as slow.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t megabyte = std::size_t{1} << 17;
#else
constexpr std::size_t megabyte = std::size_t{1} << 20;
#endif

// A text of about so many bytes that consists of one construct.
struct Construct {
  std::string name;
  std::function<std::string(std::size_t bytes)> text;
};

inline double seconds_of(const std::function<void()>& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

// Expects the larger work to take at most so many times as long as the smaller one, in one of several tries: other
// programs on the machine make single ones longer. Each returns its seconds.
inline void expect_times(double most_times, const std::function<double()>& smaller,
                         const std::function<double()>& larger, const std::string& what) {
  constexpr double too_short = 2e-3;
  constexpr int tries = 4;
  double small = smaller(), large = larger();
  for (int i = 1; i < tries && large > most_times * std::max(small, too_short); ++i) {
    small = std::max(small, smaller());
    large = std::min(large, larger());
  }
  EXPECT_LE(large, most_times * std::max(small, too_short)) << what;
}

// Time that grows with the square of the size is 16 times as long here, a sort 4.4 times. Sizes that pass a cache, and
// other programs on the machine, make up to twice the difference. A reader may reject what it reads. `quarter` is that
// of a reader's limit, if this is below 4 MB.
inline void expect_linear(const std::string& reader, const std::vector<Construct>& constructs,
                          const std::function<void(const std::string&)>& read, std::size_t quarter = megabyte) {
  constexpr double most_times = 10;
  for (const Construct& construct : constructs) {
    const auto time = [&](std::size_t bytes) {
      const std::string text = construct.text(bytes);
      EXPECT_GT(text.size(), bytes / 2) << construct.name;
      return seconds_of([&] {
        try {
          read(text);
        } catch (const Error&) {
        }
      });
    };
    expect_times(
        most_times, [&] { return time(quarter); }, [&] { return time(4 * quarter); }, reader + ": " + construct.name);
  }
}

// begin item(0) separator item(1) ... end.
template <class Item>
std::string joined(std::size_t bytes, const std::string& begin, const std::string& separator, const std::string& end,
                   Item item) {
  std::string text = begin;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += (i > 0 ? separator : "") + item(i);
  return text + end;
}

template <class Item>
Construct list_of(const char* name, const std::string& begin, const std::string& end, Item item) {
  return {name, [=](std::size_t bytes) { return joined(bytes, begin, ",", end, item); }};
}

inline Construct repeated(const std::string& item, const std::string& begin = "", const std::string& end = "") {
  return {item.substr(0, 20),
          [=](std::size_t bytes) { return joined(bytes, begin, "", end, [&](std::size_t) { return item; }); }};
}

template <class Item>
Construct numbered(const char* name, const std::string& begin, const std::string& end, Item item) {
  return {name, [=](std::size_t bytes) { return joined(bytes, begin, "", end, item); }};
}

}  // namespace minimind
