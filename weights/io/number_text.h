#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace minimind {

// Returns a number as JSON has it, also one that parse_json() kept as digits; std::nullopt for another value.
std::optional<std::string> number_text(const nlohmann::ordered_json& value);

}  // namespace minimind
