#include "tools/options/command_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "tools/options/help.h"

namespace minimind {

using Text = const std::string&;

namespace {

constexpr bool has_backslashes = std::filesystem::path::preferred_separator == '\\';

}  // namespace

std::string not_empty(const std::string& value) {
  return value.empty() ? "the value is empty; omit the option" : "";
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}

Option* Option::check(OptionCheck check) {
  option_->check([check = std::move(check)](std::string value) { return check(value); });
  return this;
}

Option* Option::transform(OptionCheck check) {
  option_->transform(CLI::Validator(std::move(check), ""));
  return this;
}

Option* Option::transform(const OptionWords& words) {
  return transform(words.check)->offer(words.words);
}

// As what a check that accepts everything says of itself, which choices_of() reads.
Option* Option::offer(const std::vector<std::string>& words) {
  option_->check(CLI::Validator([](std::string&) { return std::string(); }, '{' + CLI::detail::join(words, ",") + '}'));
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::allow_extra_args(bool several) {
  option_->allow_extra_args(several);
  return this;
}

Option* CommandOptions::keep(CLI::Option* option) {
  if (!takes_path(*option)) return &options_.emplace_back(*option);
  // A script's variable without a value names no file, which is not the same as no option.
  option->check(not_empty);
  // Windows takes slashes, too, and the rooms below know only them.
  if (has_backslashes) {
    option->transform(
        CLI::Validator([](std::string& path) { return std::ranges::replace(path, '\\', '/'), std::string(); }, ""));
  }
  return &options_.emplace_back(*option);
}

template <class Value>
Option* CommandOptions::add_option(Text names, Value& value, Text group, Text value_name, Text help) {
  return keep(command_->add_option(names, value, help)->group(group)->type_name(value_name));
}

template Option* CommandOptions::add_option(Text, std::string&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::optional<std::string>&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::vector<std::string>&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, double&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::optional<double>&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::size_t&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::optional<std::size_t>&, Text, Text, Text);
template Option* CommandOptions::add_option(Text, std::optional<std::uint16_t>&, Text, Text, Text);

template <class Value>
Option* CommandOptions::add_option_function(Text names, const std::function<void(const Value&)>& set, Text group,
                                            Text value_name, Text help) {
  return keep(command_->add_option_function<Value>(names, set, help)->group(group)->type_name(value_name));
}

template Option* CommandOptions::add_option_function<std::string>(Text, const std::function<void(Text)>&, Text, Text,
                                                                  Text);
template Option* CommandOptions::add_option_function<std::size_t>(Text, const std::function<void(const std::size_t&)>&,
                                                                  Text, Text, Text);

Option* CommandOptions::add_positional(Text name, std::string& value, Text help) {
  return keep(command_->add_option(name, value, help));
}

Option* CommandOptions::add_positional(Text name, const std::function<void(Text)>& set, Text help) {
  return keep(command_->add_option_function<std::string>(name, set, help));
}

Option* CommandOptions::add_flag(Text names, bool& value, Text group, Text help) {
  return keep(command_->add_flag(names, value, help)->group(group));
}

Option* CommandOptions::add_flag_callback(Text names, std::function<void()> set, Text group, Text help) {
  return keep(command_->add_flag_callback(names, std::move(set), help)->group(group));
}

Option* CommandOptions::get_option(const std::string& name) {
  return keep(command_->get_option(name));
}

void CommandOptions::allow_only(Option* option, const std::vector<std::string>& others) {
  for (CLI::Option* const other : command_->get_options()) {
    const auto is_other = [&](const std::string& name) { return other->check_name(name); };
    if (other != option->option_ && std::ranges::none_of(others, is_other)) option->option_->excludes(other);
  }
}

void CommandOptions::footer(const std::string& text) {
  command_->footer(text);
}

}  // namespace minimind
