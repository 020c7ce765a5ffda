#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/checkpoint_choice.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/note.h"
#include "tools/standard_output.h"
#include "weights/error.h"
#include "weights/quote.h"

namespace {

constexpr int work_failed = 1;
constexpr int call_was_wrong = 2;

// One line, whatever the message holds.
int fail(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  minimind::note("{}", message);
  return status;
}

// CLI11 only says that a subcommand is required, not that the one given is unknown.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == argv[1]) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw minimind::UsageError(fmt::format("there is no command {}; there are {}", minimind::quoted(argv[1]), names));
}

// Whose --help would tell more about a wrong call.
std::string help_of(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? "minimind --help" : fmt::format("minimind {} --help", given.front()->get_name());
}

using Commands = std::vector<std::pair<CLI::App*, minimind::Command>>;

// Returns when everything printed has reached its destination.
int run(CLI::App& app, const Commands& commands, int argc, char** argv) {
  int status = call_was_wrong;
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
    for (const auto& [subcommand, command] : commands) {
      if (subcommand->parsed()) status = command();
    }
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    status = app.exit(success, help);
    minimind::write_output(help.str());
  }
  minimind::flush_output();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  minimind::end_at_signals();
  CLI::App app("Runs MiniMind language models on a CPU, from the checkpoint as it was saved.", "minimind");
  app.require_subcommand(1);
  app.set_version_flag("--version", MINIMIND_VERSION);
  Commands commands;
  for (const auto add : {minimind::add_generate, minimind::add_chat, minimind::add_inspect, minimind::add_logits,
                         minimind::add_compare, minimind::add_perplexity, minimind::add_tokenize, minimind::add_render,
                         minimind::add_convert, minimind::add_bench}) {
    minimind::Command command = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(command));
  }
  try {
    return run(app, commands, argc, argv);
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{}; see {}", error.what(), help_of(app)), call_was_wrong);
  } catch (const minimind::ManyCheckpoints& error) {
    fail(error.what(), call_was_wrong);
    for (const std::string& line : error.lines()) std::fputs(("  " + line + "\n").c_str(), stderr);
    return call_was_wrong;
  } catch (const minimind::UsageError& error) {
    return fail(error.what(), call_was_wrong);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", work_failed);
  } catch (const std::system_error& error) {
    // Printing throws it.
    return fail(std::ferror(stdout) ? minimind::OutputFailure(error.code().value()).what() : error.what(), work_failed);
  } catch (const std::exception& error) {
    return fail(error.what(), work_failed);
  }
}
