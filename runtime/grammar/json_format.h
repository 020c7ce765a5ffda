#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// A regular expression, for strings_with_match(), of strings that have this format of JSON Schema; nothing for a format
// that is not known here. Dates are of the years 1000 to 9999, host names of at most four labels, addresses in their
// plain forms.
std::optional<std::string> pattern_of_format(std::string_view format);

}  // namespace minimind
