#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/options/commands.h"

namespace minimind {

// All of what the command line can say, and the work that each command does.
class CommandLine {
 public:
  CommandLine();

  const CLI::App& app() const { return app_; }

  // Does what the arguments, which come after the program's name, ask for and returns the exit status; prints the help
  // if there is no command. Throws UsageError if the arguments are wrong, and what the command throws.
  int run(std::vector<std::string> arguments);

 private:
  CLI::App app_;
  std::vector<std::pair<CLI::App*, Command>> commands_;
};

}  // namespace minimind
