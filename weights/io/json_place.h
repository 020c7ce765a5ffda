#pragma once

#include <cstdint>

namespace minimind {

// Where in a JSON text, which may be incomplete, a byte is: between its parts, in a string, or after a backslash there.
enum class JsonPlace : std::uint8_t { between, string, escape };

// Returns where the text is after this byte.
constexpr JsonPlace after(JsonPlace place, char byte) {
  if (place == JsonPlace::escape) return JsonPlace::string;
  if (byte == '"') return place == JsonPlace::string ? JsonPlace::between : JsonPlace::string;
  return place == JsonPlace::string && byte == '\\' ? JsonPlace::escape : place;
}

// Whether the byte, at this place, is whitespace between the parts.
constexpr bool is_space(JsonPlace place, char byte) {
  return place == JsonPlace::between && (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
}

}  // namespace minimind
