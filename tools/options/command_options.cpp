#include "tools/options/command_options.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace minimind {

Option* Option::group(const std::string& name) {
  option_->group(name);
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
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

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
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

template <class Value>
Option* CommandOptions::add_option(const std::string& names, Value& value, const std::string& help) {
  return &options_.emplace_back(*command_->add_option(names, value, help));
}

template Option* CommandOptions::add_option(const std::string&, std::string&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, double&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::size_t&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::optional<std::size_t>&, const std::string&);
template Option* CommandOptions::add_option(const std::string&, std::optional<std::uint16_t>&, const std::string&);

template <class Value>
Option* CommandOptions::add_option_function(const std::string& names, const std::function<void(const Value&)>& set,
                                            const std::string& help) {
  return &options_.emplace_back(*command_->add_option_function<Value>(names, set, help));
}

template Option* CommandOptions::add_option_function<std::string>(const std::string&,
                                                                  const std::function<void(const std::string&)>&,
                                                                  const std::string&);
template Option* CommandOptions::add_option_function<std::size_t>(const std::string&,
                                                                  const std::function<void(const std::size_t&)>&,
                                                                  const std::string&);

Option* CommandOptions::add_flag(const std::string& names, bool& value, const std::string& help) {
  return &options_.emplace_back(*command_->add_flag(names, value, help));
}

Option* CommandOptions::add_flag_callback(const std::string& names, std::function<void()> set,
                                          const std::string& help) {
  return &options_.emplace_back(*command_->add_flag_callback(names, std::move(set), help));
}

Option* CommandOptions::get_option(const std::string& name) {
  return &options_.emplace_back(*command_->get_option(name));
}

void CommandOptions::footer(const std::string& text) {
  command_->footer(text);
}

}  // namespace minimind
