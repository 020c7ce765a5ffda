#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

#include "weights/io/error.h"

namespace minimind {

// Refuses, while parsing, JSON that is nested deeper than any config or tokenizer is: nlohmann's parser does not
// recurse, but what prints, compares and copies its values does. `source` begins the message of the Error.
inline nlohmann::json::parser_callback_t limited_depth(const std::string& source) {
  return [source](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    constexpr int max_depth = 16;
    if (depth > max_depth) throw Error(fmt::format("{}: is nested deeper than {} levels", source, max_depth));
    return true;
  };
}

}  // namespace minimind
