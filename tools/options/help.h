#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace minimind {

// How --help shows an option. Help lists options by group, in this order.
struct HelpOption {
  std::string_view name;
  std::string_view value;  // what follows it; empty for a flag
};

struct HelpGroup {
  std::string_view title;
  std::span<const HelpOption> options;
};

// The groups of all commands. An option that is in none is shown at the end, under "Other options".
std::span<const HelpGroup> help_groups();

struct HelpExample {
  std::string_view command;
  std::string_view call;
  std::string_view does;
};

std::span<const HelpExample> help_examples();

// Writes --help in the language in force, as wide as the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace minimind
