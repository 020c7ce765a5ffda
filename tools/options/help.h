#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace minimind {

// The groups of options, in the order in which --help and the pages list them. Each option is made with its group, the
// name of its value and its text, which is bilingual(): see language.h.
inline constexpr const char* common_group = "Common options";
inline constexpr const char* model_group = "Model";
inline constexpr const char* prompt_group = "Prompt";
inline constexpr const char* sampling_group = "Sampling";
inline constexpr const char* constraint_group = "Constraints";
inline constexpr const char* speed_group = "Speed";
inline constexpr const char* server_group = "Server";
inline constexpr const char* output_group = "Output";
inline constexpr std::array help_groups = {common_group,     model_group, prompt_group, sampling_group,
                                           constraint_group, speed_group, server_group, output_group};

struct HelpExample {
  std::string_view command;
  std::string_view call;
  std::string_view english, chinese;  // what it does
};

std::span<const HelpExample> help_examples();

// Returns how a command is called, such as "minimind chat [MODEL] [options]", in the current language.
std::string call_of(const CLI::App& command);

// Whether the option takes a value; a flag takes none.
bool takes_value(const CLI::Option& option);

// Returns the name of an option's value in English, such as "TYPE".
std::string value_name(const CLI::Option& option);

// Whether the value of an option, or of an argument that is known by its place, is a file or a folder.
bool takes_path(const CLI::Option& option);

// Returns the words that Option::offer() was given; empty if any value may be right.
std::vector<std::string> choices_of(const CLI::Option& option);

// Returns the names of an option and of its value, such as "-n, --max-tokens N", in the current language.
std::string label_of(const CLI::Option& option);

// Returns what an option does, with its default, in the current language.
std::string description_of(const CLI::Option& option);

// Returns the formatter of --help: in the current language, as wide as the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Returns the man page of a command, or of the program if `command` is it, in the current language: text for man(7).
std::string man_page_of(const CLI::App& command);

// The shells that have completions.
const std::vector<std::string>& shell_names();

// Returns the completions of a shell for all commands of `app`, their options and values, described in the current
// language: a script for the shell to read. `shell` must be one of shell_names().
std::string completion_of(const CLI::App& app, std::string_view shell);

}  // namespace minimind
