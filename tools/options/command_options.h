#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace minimind {

// Returns what is wrong with an option's value, or "" if it is right; may replace the value by another spelling.
using OptionCheck = std::function<std::string(std::string& value)>;

// The check of all options and arguments that name a file or folder, and of others whose empty value would be like
// none.
std::string not_empty(const std::string& value);

// A check that accepts some words, and perhaps other spellings of them.
struct OptionWords {
  std::vector<std::string> words;
  OptionCheck check;
};

// An option of a command. Each function returns the option itself; all but offer() have the names of CLI11's Option.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  // The default value in the help: that which the variable has, or `text`.
  Option* capture_default_str();
  Option* default_str(const std::string& text);
  Option* check(OptionCheck check);
  // As check(), and the option takes the value as the check left it.
  Option* transform(OptionCheck check);
  Option* transform(const OptionWords& words);
  // Completions of the shell offer these words as the value, or in a list if the value's name ends with ",...".
  Option* offer(const std::vector<std::string>& words);
  Option* excludes(Option* other);
  Option* needs(Option* other);
  Option* required();
  // With false, each mention of the option takes one value, not all that follow.
  Option* allow_extra_args(bool several);

 private:
  friend class CommandOptions;

  CLI::Option* option_;
};

// The options of a command, a thin door to CLI11's App: its headers take longer to compile than the code of most
// commands, so that only .cpp files of this room include them.
class CommandOptions {
 public:
  // `command` must outlive this object.
  explicit CommandOptions(CLI::App& command) : command_(&command) {}

  // Adds an option that sets `value`, of a type in command_options.cpp. The returned options belong to this object.
  // `names` are separated by commas, `group` is one of help_groups, and `value_name` stands for the value in the help.
  template <class Value>
  Option* add_option(const std::string& names, Value& value, const std::string& group, const std::string& value_name,
                     const std::string& help);

  // Adds one that calls `set` with its value, a std::string or std::size_t.
  template <class Value>
  Option* add_option_function(const std::string& names, const std::function<void(const Value&)>& set,
                              const std::string& group, const std::string& value_name, const std::string& help);

  // Adds an argument that is known by its place. The second function calls `set` with it.
  Option* add_positional(const std::string& name, std::string& value, const std::string& help);
  Option* add_positional(const std::string& name, const std::function<void(const std::string&)>& set,
                         const std::string& help);

  Option* add_flag(const std::string& names, bool& value, const std::string& group, const std::string& help);
  Option* add_flag_callback(const std::string& names, std::function<void()> set, const std::string& group,
                            const std::string& help);

  // Returns an option that was added before.
  Option* get_option(const std::string& name);

  // With `option`, the command takes none of its options so far but these.
  void allow_only(Option* option, const std::vector<std::string>& others);

  // The text at the end of the help.
  void footer(const std::string& text);

 private:
  Option* keep(CLI::Option* option);

  CLI::App* command_;
  std::deque<Option> options_;
};

}  // namespace minimind
