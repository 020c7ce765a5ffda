#include "tools/command_line.h"

#include <fmt/core.h>

#include <algorithm>

#include "tools/arguments.h"
#include "weights/error.h"

namespace minimind {
namespace {

// Whose --help would tell more about a wrong call.
std::string help_of(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? "minimind --help" : fmt::format("minimind {} --help", given.front()->get_name());
}

}  // namespace

CommandLine::CommandLine()
    : app_("Runs MiniMind language models on a CPU, from the checkpoint as it was saved.", "minimind") {
  app_.set_version_flag("--version", MINIMIND_VERSION);
  for (const auto add : {add_generate, add_chat, add_inspect, add_logits, add_compare, add_perplexity, add_tokenize,
                         add_render, add_convert, add_bench}) {
    Command run = add(app_);
    commands_.emplace_back(app_.get_subcommands({}).back(), std::move(run));
  }
}

int CommandLine::run(std::vector<std::string> arguments) {
  arguments = expand_help(std::move(arguments));
  check_arguments(app_, arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app_.parse(arguments);
  } catch (const CLI::Success& success) {
    return app_.exit(success);
  } catch (const CLI::ExcludesError& error) {
    throw UsageError("options contradict each other: " + std::string(error.what()) + "; give one of them");
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see {}", error.what(), help_of(app_)));
  }
  for (const auto& [command, run] : commands_) {
    if (command->parsed()) return run();
  }
  fmt::print("{}", app_.help());
  return 0;
}

}  // namespace minimind
