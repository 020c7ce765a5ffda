#include "tools/options/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "tools/options/arguments.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "tools/terminal/standard_output.h"
#include "weights/io/error.h"
#include "weights/io/suggestion.h"

namespace minimind {
namespace {

// Returns the --help call to name in a usage error.
std::string call_for_help(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? "minimind --help" : fmt::format("minimind {} --help", given.front()->get_name());
}

void add_language(CLI::App& app) {
  const auto set = [](const std::string& name) {
    const auto language = parse_language(name);
    const std::vector<std::string> names{"zh", "en"};
    if (!language) throw UsageError(fmt::format("--lang: {}", unknown_choice(name, names)));
    set_language(*language);
  };
  app.add_option_function<std::string>("--lang", set,
                                       "language of help and notes: zh or en (default: that of the locale)");
}

}  // namespace

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>("Run MiniMind language models on a CPU, straight from the checkpoint.",
                                      "minimind")) {
  app_->formatter(help_formatter());
  app_->set_help_flag("-h,--help", "print this help");
  app_->set_version_flag("--version", MINIMIND_VERSION, "print the version");
  app_->footer("minimind help COMMAND shows the options of a command.");
  add_language(*app_);
  for (const auto add : {add_generate, add_chat, add_serve, add_batch, add_inspect, add_logits, add_compare,
                         add_perplexity, add_tokenize, add_render, add_validate, add_convert, add_bench}) {
    Command run = add(*app_);
    CLI::App* command = app_->get_subcommands({}).back();
    add_language(*command);
    commands_.emplace_back(command, std::move(run));
  }
}

CommandLine::~CommandLine() = default;

int CommandLine::run(std::vector<std::string> arguments) {
  arguments = expand_help(std::move(arguments));
  check_arguments(*app_, arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app_->parse(arguments);
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    const int status = app_->exit(success, help);
    write_output(help.str());
    return status;
  } catch (const CLI::ExcludesError& error) {
    throw UsageError("options contradict each other: " + std::string(error.what()) + "; give one of them");
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see {}", error.what(), call_for_help(*app_)));
  }
  for (const auto& [command, run] : commands_) {
    if (command->parsed()) return run();
  }
  write_output(app_->help());
  return 0;
}

}  // namespace minimind
