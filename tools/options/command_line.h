#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/options/command_options.h"
#include "weights/base/error.h"

namespace minimind {

// Each function adds the options of one command to `command`. After the command line has been parsed, the returned
// function runs the command and returns the exit status; it throws Error and UsageError.
using Command = std::function<int()>;

Command add_generate(CommandOptions& command);
Command add_chat(CommandOptions& command);
Command add_inspect(CommandOptions& command);
Command add_logits(CommandOptions& command);
Command add_compare(CommandOptions& command);
Command add_trace(CommandOptions& command);
Command add_explain(CommandOptions& command);
Command add_perplexity(CommandOptions& command);
Command add_tokenize(CommandOptions& command);
Command add_render(CommandOptions& command);
Command add_validate(CommandOptions& command);
Command add_convert(CommandOptions& command);
Command add_batch(CommandOptions& command);
Command add_serve(CommandOptions& command);
Command add_watch(CommandOptions& command);
Command add_bench(CommandOptions& command);

// The command line: all commands, with the options of those that are among `used`, or of all if none is: to state those
// of all takes a notable part of the time until a small model's first token.
class CommandLine {
 public:
  // `version` returns the text of --version.
  explicit CommandLine(std::function<std::string()> version, const std::vector<std::string>& used = {});
  ~CommandLine();

  const CLI::App& app() const { return *app_; }

  // Runs the command in the arguments, without the program's name, and returns the exit status; prints the help if
  // there is no command. Throws UsageError if the arguments are wrong, and what the command throws.
  int run(std::vector<std::string> arguments);

 private:
  std::unique_ptr<CLI::App> app_;
  std::string printed_;  // what --completion or --man prints
  std::vector<std::pair<CLI::App*, Command>> commands_;
};

// Returns the message of an error, followed by the options for its setting: "...; state the two numbers (--heads and
// --kv-heads, or --config)".
std::string message_of(const Error& error);

}  // namespace minimind
