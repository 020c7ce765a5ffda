#include "tools/options/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "tools/options/arguments.h"
#include "tools/options/help.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"

namespace minimind {
namespace {

struct NamedCommand {
  const char *name, *description;
  Command (*add_options)(CLI::App& command);
};

constexpr NamedCommand all_commands[] = {
    {"generate", "continue a text", add_generate},
    {"chat", "talk with a model through its chat template", add_chat},
    {"serve", "serve the OpenAI API, and a page to talk to the model", add_serve},
    {"batch", "generate many texts at once, from a file of requests", add_batch},
    {"inspect", "show what is in a checkpoint, and where each value comes from", add_inspect},
    {"logits", "write the logits of given tokens to a .npy file", add_logits},
    {"compare", "compare logits of given tokens with a reference", add_compare},
    {"perplexity", "perplexity of a text, used verbatim, and divergence from another model", add_perplexity},
    {"tokenize", "text to token ids, and back with --decode", add_tokenize},
    {"render", "turn a conversation into the prompt, with the chat template", add_render},
    {"validate", "whether a text conforms to a JSON Schema or grammar, and where not", add_validate},
    {"convert", "write a checkpoint as GGUF, a Hugging Face folder or a .pth", add_convert},
    {"watch", "show how the checkpoints of a folder grow while a trainer writes them", add_watch},
    {"bench", "measure the speed of prompts and decoding", add_bench},
};

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
  // At once: CLI11 2.6 prints the help before it calls the functions of options.
  app.add_option_function<std::string>("--lang", set,
                                       "language of help and notes: zh or en (default: that of the locale)")
      ->trigger_on_parse();
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
  for (const NamedCommand& named : all_commands) {
    CLI::App* command = app_->add_subcommand(named.name, named.description);
    Command run = named.add_options(*command);
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
    if (!command->parsed()) continue;
    const InterruptMessage message(translated("interrupted before the end"));
    return run();
  }
  write_output(app_->help());
  return 0;
}

}  // namespace minimind
