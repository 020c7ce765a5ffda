#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "tools/commands.h"
#include "weights/error.h"

namespace {

constexpr int work_failed = 1;
constexpr int call_was_wrong = 2;

// One line, whatever the message holds.
int fail(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  fmt::print(stderr, "minimind: {}\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs MiniMind language models on a CPU, from the checkpoint as it was saved.", "minimind");
  app.require_subcommand(1);
  app.set_version_flag("--version", MINIMIND_VERSION);
  std::vector<std::pair<CLI::App*, minimind::Command>> commands;
  for (const auto add : {minimind::add_generate, minimind::add_inspect, minimind::add_logits, minimind::add_compare,
                         minimind::add_tokenize}) {
    minimind::Command run = add(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(run));
  }
  try {
    app.parse(argc, argv);
    for (const auto& [subcommand, run] : commands) {
      if (subcommand->parsed()) return run();
    }
    return call_was_wrong;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{}; see minimind --help", error.what()), call_was_wrong);
  } catch (const minimind::UsageError& error) {
    return fail(error.what(), call_was_wrong);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", work_failed);
  } catch (const std::exception& error) {
    return fail(error.what(), work_failed);
  }
}
