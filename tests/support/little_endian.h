#pragma once

#include <string>

namespace minimind {

// Returns the bytes of a number as files store it.
template <typename T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace minimind
