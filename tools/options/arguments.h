#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace minimind {

// The arguments after the program's name, with `help` and `version` as the options that they are short for: "help chat"
// is "chat --help", "help" is "--help".
std::vector<std::string> expand_help(std::vector<std::string> arguments);

// Checks the names of commands and options as CLI11 will read them, before it does: it takes -temp for -t emp, and says
// less. Throws UsageError for a name that is unknown, saying which one is near, an option that lacks its value or is
// given twice, and an argument too many.
void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace minimind
