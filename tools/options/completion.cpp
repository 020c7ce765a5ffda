#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

// What a shell offers as the value of an option; {} stands for the words that the option takes.
struct ShellValues {
  const char *words, *list_of_words, *files, *folders, *nothing;
};
constexpr ShellValues bash_values{"kind=words words='{}'", "kind=words words='{}'", "kind=files", "kind=folders",
                                  "kind=nothing"};
constexpr ShellValues zsh_values{"({})", "_sequence compadd - {}", "_files", "_path_files -/", " "};
constexpr ShellValues fish_values{" -x -a '{}'", " -x -a '(__fish_append , {})'", " -r -F",
                                  " -x -a '(__fish_complete_directories)'", " -x"};

std::string values_of(const CLI::Option& option, const ShellValues& shell) {
  const std::string name = value_name(option);
  const std::vector<std::string> words = choices_of(option);
  const char* offered = shell.nothing;
  if (!words.empty()) {
    offered = name.ends_with(",...") ? shell.list_of_words : shell.words;
  } else if (takes_path(option)) {
    offered = name.find("FOLDER") == std::string::npos ? shell.files : shell.folders;
  }
  return fmt::format(fmt::runtime(offered), fmt::join(words, " "));
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

bool has_positionals(const CLI::App& command) {
  return !command.get_options([](const CLI::Option* option) { return option->get_positional(); }).empty();
}

// "-m" and "--model".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// A word that may follow "minimind", and those that may follow it if it is not a command.
struct Word {
  std::string name, description;
  std::vector<std::string> next;
};

std::vector<Word> command_words(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::App* command : app.get_subcommands({})) {
    words.push_back({command->get_name(), std::string(in_language(command->get_description())), {}});
  }
  return words;
}

std::vector<std::string> names_of(const std::vector<Word>& words) {
  std::vector<std::string> names;
  for (const Word& word : words) names.push_back(word.name);
  return names;
}

std::vector<Word> other_words(const CLI::App& app) {
  return {{"help", std::string(in_language(app.get_footer())), names_of(command_words(app))},
          {"completion", description_of(*app.get_option("--completion")), shell_names()}};
}

std::vector<Word> all_words(const CLI::App& app) {
  std::vector<Word> words = command_words(app);
  std::ranges::copy(other_words(app), std::back_inserter(words));
  return words;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  replace_all(text, what, by);
  return text;
}

// A string of bash and zsh.
std::string quoted(const std::string& text) {
  return '\'' + replaced(text, "'", "'\\''") + '\'';
}

std::string fish_string(const std::string& text) {
  return '\'' + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + '\'';
}

// `otherwise` says what is offered where neither an option's value nor an option is expected.
std::string bash_command(const CLI::App& command, const std::string& name, const std::string& otherwise) {
  std::vector<std::string> names;
  std::string after;
  for (const CLI::Option* option : options_of(command)) {
    const std::vector<std::string> all = names_of(*option);
    names.insert(names.end(), all.begin(), all.end());
    if (takes_value(*option))
      after += fmt::format("        {}) {} ;;\n", fmt::join(all, " | "), values_of(*option, bash_values));
  }
  return fmt::format("    {})\n      {} options='{}'\n      case $previous in\n{}      esac\n      ;;\n", name,
                     otherwise, fmt::join(names, " "), after);
}

constexpr const char* bash_start = R"(# Completions of minimind for bash, as minimind completion bash prints them.
_minimind() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command='' kind='' otherwise='' options='' words='' word
  # bash takes --option=value for three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
)";

constexpr const char* bash_end = R"(  esac
  if [[ -z $kind && $current == -* ]]; then
    kind=words words=$options
  fi
  case ${kind:-$otherwise} in
    # Of a list such as f16,q8_0 the last word.
    words)
      mapfile -t COMPREPLY < <(compgen -P "${current%"${current##*,}"}" -W "$words" -- "${current##*,}")
      ;;
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
  esac
}
complete -F _minimind minimind
)";

std::string bash_completion(const CLI::App& app) {
  std::string text = bash_start;
  text += fmt::format("      {}) command=$word && break ;;\n    esac\n  done\n  case $command in\n",
                      fmt::join(names_of(all_words(app)), " | "));
  text += bash_command(app, "''", fmt::format("otherwise=words words='{}'", fmt::join(names_of(all_words(app)), " ")));
  for (const Word& word : other_words(app))
    text += fmt::format("    {}) kind=words words='{}' ;;\n", word.name, fmt::join(word.next, " "));
  for (const CLI::App* command : app.get_subcommands({}))
    text += bash_command(*command, command->get_name(),
                         has_positionals(*command) ? "otherwise=files" : "otherwise=nothing");
  return text + bash_end;
}

// One argument of _arguments for each name of an option. None is offered twice, unless the option may be repeated.
std::string zsh_option(const CLI::Option& option) {
  const std::vector<std::string> names = names_of(option);
  const bool repeatable = option.get_items_expected_max() > 1;
  std::string does = replaced(description_of(option), "\\", "\\\\");
  does = replaced(replaced(std::move(does), "[", "\\["), "]", "\\]");
  std::string value;
  if (takes_value(option)) {
    const std::string name(translated(value_name(option)));
    value = fmt::format(":{}:{}", replaced(name, ":", "\\:"), values_of(option, zsh_values));
  }
  std::string text;
  for (const std::string& name : names) {
    const char* const attached = value.empty() ? "" : name.starts_with("--") ? "=" : "+";
    const std::string others = repeatable ? "*" : fmt::format("({})", fmt::join(names, " "));
    text += fmt::format("        {} \\\n", quoted(fmt::format("{}{}{}[{}]{}", others, name, attached, does, value)));
  }
  return text;
}

std::string zsh_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : options_of(command)) text += zsh_option(*option);
  return text;
}

std::string zsh_completion(const CLI::App& app) {
  std::string text = "#compdef minimind\n# Completions of minimind for zsh, as minimind completion zsh prints them.\n";
  text += "_minimind() {\n  local curcontext=$curcontext state line\n  local -a commands=(\n";
  for (const Word& word : all_words(app))
    text += fmt::format("    {}\n", quoted(fmt::format("{}:{}", word.name, word.description)));
  text += fmt::format("  )\n  _arguments -C -s \\\n{}", zsh_options(app));
  text += "        '1:command:->command' '*::argument:->argument'\n  case $state in\n";
  text += "    command) _describe command commands ;;\n    argument)\n      case $words[1] in\n";
  for (const Word& word : other_words(app))
    text += fmt::format("      {}) _arguments '1:{}:({})' ;;\n", word.name, word.name, fmt::join(word.next, " "));
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("      {})\n        _arguments -s \\\n{}        {}\n        ;;\n", command->get_name(),
                        zsh_options(*command), has_positionals(*command) ? "'*:file:_files'" : "");
  }
  return text +
         "      esac\n      ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _minimind ]]; then _minimind \"$@\"; else compdef _minimind minimind; fi\n";
}

std::string fish_options(const CLI::App& command, const std::string& condition) {
  std::string text;
  for (const CLI::Option* option : options_of(command)) {
    text += "complete -c minimind -n " + condition;
    for (const std::string& name : option->get_snames()) text += " -s " + name;
    for (const std::string& name : option->get_lnames()) text += " -l " + name;
    if (takes_value(*option)) text += values_of(*option, fish_values);
    text += " -d " + fish_string(description_of(*option)) + '\n';
  }
  return text;
}

std::string fish_completion(const CLI::App& app) {
  const auto after = [](const std::string& name) { return fmt::format("'__fish_seen_subcommand_from {}'", name); };
  const std::string before =
      fmt::format("'not __fish_seen_subcommand_from {}'", fmt::join(names_of(all_words(app)), " "));
  std::string text = "# Completions of minimind for fish, as minimind completion fish prints them.\n";
  text += "complete -c minimind -f\n";
  for (const Word& word : all_words(app)) {
    text += fmt::format("complete -c minimind -n {} -a {} -d {}\n", before, word.name, fish_string(word.description));
  }
  text += fish_options(app, before);
  for (const Word& word : other_words(app))
    text += fmt::format("complete -c minimind -n {} -a '{}'\n", after(word.name), fmt::join(word.next, " "));
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string condition = after(command->get_name());
    if (has_positionals(*command)) text += fmt::format("complete -c minimind -n {} -F\n", condition);
    text += fish_options(*command, condition);
  }
  return text;
}

}  // namespace

const std::vector<std::string>& shell_names() {
  static const std::vector<std::string> names{"bash", "zsh", "fish"};
  return names;
}

std::string completion_of(const CLI::App& app, std::string_view shell) {
  if (shell == "bash") return bash_completion(app);
  return shell == "zsh" ? zsh_completion(app) : fish_completion(app);
}

}  // namespace minimind
