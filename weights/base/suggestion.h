#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace minimind {

// Returns `text` in lower case, with a dash for every underscore.
std::string normalized(std::string_view word);

// Returns the choice that `given` most likely means: equal except for case and underscores, a prefix of the other, or
// different by few letters. Two swapped neighbours count as one letter. std::nullopt if no choice is near.
std::optional<std::string> nearest(std::string_view given, std::span<const std::string> choices);

// Returns "a, b or c".
std::string alternatives(std::span<const std::string> choices);

// Returns "'q9' is unknown, expected f32, f16 or q8_0; did you mean q8_0?"; omits the question if no choice is near.
std::string unknown_choice(std::string_view given, std::span<const std::string> choices);

}  // namespace minimind
