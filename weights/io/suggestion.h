#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace minimind {

// `text` with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// Lower case, with a dash for every underscore.
std::string normalized(std::string_view word);

// The choice that `given` most likely means: the same except case and underscores, one that is a prefix of the
// other, or one that differs by few letters, two swapped neighbours counting as one; nullopt if none is near.
std::optional<std::string> nearest(std::string_view given, std::span<const std::string> choices);

// "a, b or c"
std::string alternatives(std::span<const std::string> choices);

// "'q9' is unknown, expected f32, f16 or q8_0; did you mean q8_0?", the question only if a choice is near.
std::string unknown_choice(std::string_view given, std::span<const std::string> choices);

}  // namespace minimind
