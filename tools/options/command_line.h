#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/options/commands.h"

namespace minimind {

// The command line: all commands with their options.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();

  const CLI::App& app() const { return *app_; }

  // Runs the command in the arguments, without the program's name, and returns the exit status; prints the help if
  // there is no command. Throws UsageError if the arguments are wrong, and what the command throws.
  int run(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::pair<CLI::App*, Command>> commands_;
};

}  // namespace minimind
