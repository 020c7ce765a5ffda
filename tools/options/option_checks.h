#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/options/command_options.h"

namespace minimind {

// Checks of the values of options. CLI11's own parsers read "" as no option, -1 as 2^64 - 1, 1e9 as 1 and 010 as 8.
// Their messages name the value found and the one expected.

// Accepts the path of an existing folder.
std::string a_folder(const std::string& path);

// A finite number in decimal notation, such as 0.85 or 2e-4.
std::string a_number(const std::string& value);
std::string not_negative(const std::string& value);

// A whole number in decimal digits, for Option::transform().
OptionCheck whole_number(std::uint64_t least, std::uint64_t most);

// Splits a list such as "f16,q8_0". Throws UsageError, naming `option`, if a part is empty or repeated.
std::vector<std::string> parse_list(const std::string& text, const std::string& option);

// Parses a list such as "1,2". Also throws UsageError if a part is not a whole number in [least, most].
std::vector<std::size_t> parse_counts(const std::string& text, const std::string& option, std::size_t least,
                                      std::size_t most);

// One of `names`, for Option::transform().
OptionWords one_of(std::vector<std::string> names);

// One of `types`, by its name or a common alias (F16, fp16, half and float16 are f16), for Option::transform().
OptionWords type_name(std::vector<std::string> types);

// Parses such a name outside CLI11. Throws UsageError naming `option`.
std::string parse_type_name(const std::string& option, const std::string& given, const std::vector<std::string>& types);

// Throws UsageError if both options name one file. Neither file has to exist.
void require_two_files(const std::string& option, const std::string& path, const std::string& other_option,
                       const std::string& other_path);

}  // namespace minimind
