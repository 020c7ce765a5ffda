#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/api/failures.h"
#include "runtime/api/minimind.h"

namespace minimind {

// The values of a structure of the caller, whose header may be older and the structure therefore shorter: what it lacks
// has the default. Throws Failure for one that is longer, and for one whose size was never set.
template <class Structure>
Structure read_structure(const Structure* given, const Structure& defaults, const char* name) {
  Structure read = defaults;
  if (!given) return read;
  constexpr std::size_t least = 2 * sizeof(std::size_t);
  if (given->size < least || given->size > sizeof(Structure)) {
    throw Failure(
        MINIMIND_BAD_ARGUMENT,
        fmt::format("{}.size is {}, expected {} to {}; fill it with minimind_default_..., and use a library that is "
                    "as new as the header",
                    name, given->size, least, sizeof(Structure)));
  }
  std::memcpy(&read, given, given->size);
  return read;
}

// Writes the values to a structure of the caller, as far as it reaches.
template <class Structure>
void write_structure(const Structure& values, Structure* given, const char* name) {
  if (!given || given->size < sizeof(std::size_t)) {
    throw Failure(MINIMIND_BAD_ARGUMENT, fmt::format("{}.size is not set, expected sizeof({})", name, name));
  }
  const std::size_t size = given->size;
  std::memcpy(static_cast<void*>(given), &values, std::min(size, sizeof(Structure)));
  given->size = size;
}

// The elements of an input. Throws Failure for a null pointer with elements.
template <class T>
std::span<const T> input(const T* data, std::size_t count, const char* name) {
  if (data || count == 0) return {data, count};
  throw Failure(MINIMIND_BAD_ARGUMENT, fmt::format("{} is NULL, expected {} elements", name, count));
}
inline std::string_view input_text(const char* data, std::size_t size, const char* name) {
  const auto span = input(data, size, name);
  return {span.data(), span.size()};
}

// Copies the values to an output, if it has room for them, and writes how many there are.
template <class Values, class T>
void output(const Values& values, T* data, std::size_t capacity, std::size_t* count) {
  if (!count) throw Failure(MINIMIND_BAD_ARGUMENT, "count is NULL, expected where to write the count");
  *count = values.size();
  if (values.size() > capacity || (!data && !values.empty())) {
    throw Failure(MINIMIND_TOO_SMALL,
                  fmt::format("the output has room for {} elements, expected {}", data ? capacity : 0, values.size()));
  }
  std::copy(values.begin(), values.end(), data);
}

// Throws Failure if the output has not exactly the room or more.
inline void check_room(std::size_t capacity, std::size_t needed) {
  if (capacity >= needed) return;
  throw Failure(MINIMIND_TOO_SMALL, fmt::format("the output has room for {} elements, expected {}", capacity, needed));
}

// Throws Failure for a null pointer.
template <class T>
T& required(T* pointer, const char* name) {
  if (pointer) return *pointer;
  throw Failure(MINIMIND_BAD_ARGUMENT, fmt::format("{} is NULL, expected a value", name));
}

}  // namespace minimind
