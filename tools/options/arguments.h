#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace minimind {

// Replaces the words `help`, `version` and `completion` in the arguments after the program's name by options: "help
// chat" becomes "chat --help", "help" becomes "--help", "completion bash" becomes "--completion bash".
std::vector<std::string> expand_help(std::vector<std::string> arguments);

// Checks the names of commands and options before CLI11 parses them, because CLI11 reads -temp as -t emp and its
// messages say less. Throws UsageError for an unknown name, suggesting the nearest one, for an option that lacks its
// value or is repeated, and for an extra argument.
void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace minimind
