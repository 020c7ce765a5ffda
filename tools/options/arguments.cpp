#include "tools/options/arguments.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>

#include "tools/options/help.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// An option of other programs, such as MiniMind's eval_llm.py, with our own option or what to do instead.
struct Foreign {
  std::string_view name;    // normalized, without dashes
  std::string_view option;  // our own; empty if there is none
  std::string_view advice;
};

constexpr std::string_view name_the_file = "name the checkpoint itself, as in minimind chat out/full_sft_768.pth";
constexpr std::string_view omit_shape = "the checkpoint defines its shape; omit the option";

constexpr std::array foreign_options = {
    Foreign{"temp", "--temperature", ""},
    Foreign{"open-thinking", "--think", ""},
    Foreign{"enable-thinking", "--think", ""},
    Foreign{"max-new-tokens", "--max-tokens", ""},
    Foreign{"max-length", "--max-tokens", ""},
    Foreign{"n-predict", "--max-tokens", ""},
    Foreign{"max-seq-len", "--ctx-size", ""},
    Foreign{"n-ctx", "--ctx-size", ""},
    Foreign{"context", "--ctx-size", ""},
    Foreign{"repetition-penalty", "--repeat-penalty", ""},
    Foreign{"inference-rope-scaling", "--rope-scaling", "did you mean --rope-scaling yarn?"},
    Foreign{"lora-weight", "--lora", "did you mean --lora PATH?"},
    Foreign{"lora-name", "--lora", "did you mean --lora PATH?"},
    Foreign{"dtype", "--type", ""},
    Foreign{"cache-type-k", "--kv-type", ""},
    Foreign{"cache-type-v", "--kv-type", ""},
    Foreign{"system-prompt", "--system", ""},
    Foreign{"num-threads", "--threads", ""},
    Foreign{"weight", "", name_the_file},
    Foreign{"load-from", "", name_the_file},
    Foreign{"load", "", name_the_file},
    Foreign{"model-mode", "", name_the_file},
    Foreign{"save-dir", "", name_the_file},
    Foreign{"out-dir", "", name_the_file},
    Foreign{"hidden-size", "", omit_shape},
    Foreign{"dim", "", omit_shape},
    Foreign{"num-hidden-layers", "", omit_shape},
    Foreign{"n-layers", "", omit_shape},
    Foreign{"use-moe", "", omit_shape},
    Foreign{"history-cnt", "--historys", ""},
    Foreign{"version", "", "to print the version, type minimind version"},
    Foreign{"device", "", "models run on the CPU; omit the option"},
    Foreign{"stream", "", "text is printed as it is generated; omit the option"},
    Foreign{"show-speed", "", "the summary and /stats show the speed; omit the option"},
};

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string name_of(const CLI::App& command) {
  return command.get_parent() ? "minimind " + command.get_name() : "minimind";
}

// Returns the first other command that has an option; nullptr if none has.
const CLI::App* other_command_with(const CLI::App& command, const std::string& option) {
  if (!command.get_parent()) return nullptr;
  for (const CLI::App* other : command.get_parent()->get_subcommands({})) {
    if (other->get_option_no_throw(option)) return other;
  }
  return nullptr;
}

// Returns what to do instead of an option that `command` does not have; empty if unknown.
std::string advice_for(const CLI::App& command, const std::string& given) {
  const std::string word = normalized(given).substr(std::min(given.find_first_not_of('-'), given.size()));
  if (command.get_name() == "convert" && (word == "m" || word == "model" || word == "o" || word == "output")) {
    return "name both without an option, as in minimind convert model.pth model.gguf";
  }
  for (const Foreign& foreign : foreign_options) {
    if (foreign.name != word) continue;
    const std::string option(foreign.option);
    if (option.empty() || command.get_option_no_throw(option)) {
      return foreign.advice.empty() ? fmt::format("did you mean {}?", option) : std::string(foreign.advice);
    }
    if (const auto* other = other_command_with(command, option)) {
      return fmt::format("minimind {} has {}", other->get_name(), option);
    }
  }
  const auto* other = command.get_option_no_throw("--" + word) ? nullptr : other_command_with(command, "--" + word);
  if (other) {
    return fmt::format("only other commands have it, such as minimind {}", other->get_name());
  }
  for (const CLI::App* sub : command.get_subcommands({})) {
    const bool has_it = sub->get_option_no_throw(given) != nullptr;
    if (has_it) return fmt::format("put options after the command, as in minimind {} {}", sub->get_name(), given);
  }
  if (const auto meant = nearest("--" + word, long_options(command))) return fmt::format("did you mean {}?", *meant);
  return "";
}

[[noreturn]] void refuse_option(const CLI::App& command, const std::string& given) {
  const std::string advice = advice_for(command, given);
  throw UsageError(fmt::format("unknown option {}; {}", quote(given),
                               advice.empty() ? fmt::format("{} --help lists the options", name_of(command)) : advice));
}

bool looks_like_a_model(const std::string& argument) {
  std::error_code failed;
  if (argument.find('/') != std::string::npos || std::filesystem::exists(argument, failed)) return true;
  return std::any_of(argument.begin(), argument.end(), [](char c) { return c == '.'; });
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& given) {
  if (looks_like_a_model(given)) {
    throw UsageError(
        fmt::format("{} is not a command; to talk with a model, type minimind chat {}", quote(given), given));
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string expected = alternatives(names);
  names.insert(names.end(), {"help", "version", "completion"});
  const auto meant = nearest(given, names);
  throw UsageError(fmt::format("unknown command {}, expected {}{}", quote(given), expected,
                               meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

// -temp or -max_tokens, which CLI11 would take for -t emp and -m ax_tokens.
bool is_long_option_with_one_dash(const CLI::App& command, const std::string& argument) {
  constexpr std::size_t shortest_prefix = 4;
  const std::string word = "-" + normalized(argument.substr(0, argument.find('=')));
  if (word.size() < std::string_view("--pq").size() + 1) return false;
  const auto named = [&](const std::string& name) {
    return name == word || (word.size() >= 2 + shortest_prefix && name.starts_with(word));
  };
  const std::vector<std::string> names = long_options(command);
  if (std::any_of(names.begin(), names.end(), named)) return true;
  return std::any_of(foreign_options.begin(), foreign_options.end(),
                     [&](const Foreign& foreign) { return "--" + std::string(foreign.name) == word; });
}

// Reads the arguments as CLI11 does.
class ArgumentCheck {
 public:
  ArgumentCheck(const CLI::App& app, const std::vector<std::string>& arguments)
      : command_(&app), arguments_(arguments) {}

  void run() {
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (argument == "--") return;
      if (argument.starts_with("--")) {
        check_long(argument);
      } else if (argument.size() > 1 && argument[0] == '-' && !std::isdigit(static_cast<unsigned char>(argument[1]))) {
        check_short(argument);
      } else if (!command_->get_parent()) {
        enter(argument);
      } else {
        check_positional(argument);
      }
    }
  }

 private:
  void enter(const std::string& name) {
    for (const CLI::App* command : command_->get_subcommands({})) {
      if (command->get_name() != name) continue;
      command_ = command;
      return;
    }
    refuse_command(*command_, name);
  }

  void check_long(const std::string& argument) {
    const std::size_t end = std::min(argument.find('='), argument.size());
    const CLI::Option* option = command_->get_option_no_throw(argument.substr(0, end));
    if (!option) refuse_option(*command_, argument.substr(0, end));
    note_use(*option);
    if (takes_value(*option) && end == argument.size()) skip_value(argument);
  }

  // Flags may share one dash, and a value may follow its option without a space.
  void check_short(const std::string& argument) {
    if (is_long_option_with_one_dash(*command_, argument)) refuse_option(*command_, argument);
    for (std::size_t i = 1; i < argument.size(); ++i) {
      const std::string name{'-', argument[i]};
      const CLI::Option* option = command_->get_option_no_throw(name);
      if (!option) refuse_option(*command_, argument);
      note_use(*option);
      if (!takes_value(*option)) continue;
      if (i + 1 == argument.size()) skip_value(name);
      return;
    }
  }

  void check_positional(const std::string& argument) {
    const auto options = command_->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (++positionals_ <= options.size()) {
      if (takes_text() && !asks_for_help() && !looks_like_a_model(argument)) refuse_text(argument);
      return;
    }
    throw UsageError(fmt::format("{} is an argument too many{}; see {} --help", quote(argument),
                                 command_->get_option_no_throw("--prompt") ? "; text follows -p" : "",
                                 name_of(*command_)));
  }

  // watch takes one, too, but a folder that is not there yet is more likely.
  bool takes_text() const { return command_->get_option_no_throw("--file") && command_->get_name() != "watch"; }

  bool asks_for_help() const {
    return std::any_of(arguments_.begin(), arguments_.end(),
                       [](const std::string& argument) { return argument == "-h" || argument == "--help"; });
  }

  // `chat 你好`: the message without its -p.
  [[noreturn]] void refuse_text(const std::string& argument) const {
    throw UsageError(fmt::format("{} is not a file or folder; text follows -p, as in {} -p {}; see {} --help",
                                 quote(argument), name_of(*command_), quote(argument), name_of(*command_)));
  }

  void note_use(const CLI::Option& option) {
    const bool once = option.get_items_expected_max() == 1;
    if (!once || seen_.insert(&option).second) return;
    throw UsageError(fmt::format("{} is repeated; give it once", option.get_name()));
  }

  void skip_value(const std::string& option) {
    if (++at_ < arguments_.size()) return;
    throw UsageError(fmt::format("{} requires a value; see {} --help", option, name_of(*command_)));
  }

  const CLI::App* command_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  std::size_t positionals_ = 0;
  std::set<const CLI::Option*> seen_;
};

}  // namespace

std::vector<std::string> expand_help(std::vector<std::string> arguments) {
  auto first = arguments.begin();
  while (first != arguments.end() && first->starts_with("--lang")) {
    const bool value_follows = *first++ == "--lang";
    if (value_follows && first != arguments.end()) ++first;
  }
  if (first == arguments.end()) return arguments;
  const auto is_option = [](const std::string& word) { return word == "version" || word == "completion"; };
  if (is_option(*first)) first->insert(0, "--");
  if (*first != "help") return arguments;
  first = arguments.erase(first);
  if (first != arguments.end() && (*first == "help" || is_option(*first))) arguments.erase(first);
  arguments.emplace_back("--help");
  return arguments;
}

void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  ArgumentCheck(app, arguments).run();
}

}  // namespace minimind
