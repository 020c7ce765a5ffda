#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace minimind {

// An option in --help, which lists options by group in this order.
struct HelpOption {
  std::string_view name;
  std::string_view value;  // the name of its value; empty for a flag
};

struct HelpGroup {
  std::string_view title;
  std::span<const HelpOption> options;
};

// Returns the groups of all commands. Options in no group are shown at the end, under "Other options".
std::span<const HelpGroup> help_groups();

struct HelpExample {
  std::string_view command;
  std::string_view call;
  std::string_view does;
};

std::span<const HelpExample> help_examples();

// Returns the formatter of --help: in the current language, as wide as the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace minimind
