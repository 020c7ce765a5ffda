#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace minimind {

// For CLI11, whose own readers take "" for no option, -1 for 2^64 - 1, 1e9 for 1 and 010 for 8. Each says what was
// found and what was expected.

std::string not_empty(const std::string& value);

// A finite number in decimal notation, such as 0.85 or 2e-4.
std::string a_number(const std::string& value);
std::string not_negative(const std::string& value);

// A whole number in decimal digits; used with Option::transform().
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

// The same for a text by itself. Throws UsageError that names `option`.
std::uint64_t parse_whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                                 std::uint64_t most);

// One of `names`; used with Option::transform().
CLI::Validator one_of(std::vector<std::string> names);

// One of `types`, by its name or by one that it has elsewhere: F16, fp16, half and float16 are f16; used with
// Option::transform().
CLI::Validator type_name(std::vector<std::string> types);

// The same for a name by itself. Throws UsageError that names `option`.
std::string parse_type_name(const std::string& option, const std::string& given, const std::vector<std::string>& types);

// The types that weights can have, and those of keys and values.
const std::vector<std::string>& weight_types();
const std::vector<std::string>& kv_types();

}  // namespace minimind
