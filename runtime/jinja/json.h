#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

inline constexpr std::size_t max_json_size = std::size_t{16} << 20;

// The value that a JSON text stands for, mappings in the order of the text. `source` begins the message of the Error
// thrown for what is no JSON, is longer than max_json_size, is nested over 150 deep or has an integer of more than 64
// bits.
Value parse_json(std::string_view text, const std::string& source);

}  // namespace minimind::jinja
