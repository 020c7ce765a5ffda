#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace minimind {

// The shells that have completions.
const std::vector<std::string>& shell_names();

// Returns the completions of a shell for all commands of `app`, their options and values, described in the current
// language: a script for the shell to read. `shell` must be one of shell_names().
std::string completion_of(const CLI::App& app, std::string_view shell);

}  // namespace minimind
