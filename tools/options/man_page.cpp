#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

std::string_view in_either(std::string_view english, std::string_view chinese) {
  return language() == Language::english ? english : chinese;
}

constexpr std::string_view may_break = "\\:";  // a place where man may break a line

// Whether a line may break between two parts of a text: before a Chinese character and after Chinese punctuation, but
// not before punctuation.
bool is_breakable(std::string_view before, std::string_view after) {
  constexpr std::string_view first_character = "\u3400", last_character = "\uA000";
  constexpr std::string_view marks[] = {"、", "，", "；", "：", "。", "）", " "};
  if (before.ends_with(' ') || before.ends_with("（")) return false;
  if (after >= first_character && after < last_character) return true;
  const auto ends = [&](std::string_view mark) { return before.ends_with(mark); };
  const auto starts = [&](std::string_view mark) { return after.starts_with(mark); };
  return std::ranges::any_of(marks, ends) && std::ranges::none_of(marks, starts);
}

// Returns the text as man shows it unchanged: none of it is a request or a typographic sign.
std::string escaped(std::string_view text) {
  std::string roff;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view before = text.substr(0, i);
    if (!before.empty() && is_breakable(before, text.substr(i))) roff += may_break;
    switch (text[i]) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      case '.':
        roff += before.empty() || before.ends_with(' ') ? "\\&." : ".";
        break;
      default:
        roff += text[i];
    }
  }
  return roff;
}

// Returns escaped text in short lines. Where one ends between Chinese characters, man joins it with the next.
std::string lines_of(std::string_view text) {
  constexpr std::size_t longest = 76;
  std::string lines = escaped(text);
  for (std::size_t begin = 0; lines.size() - begin > longest;) {
    const std::string_view line = std::string_view(lines).substr(begin, longest);
    const std::size_t mark = line.rfind(may_break);
    std::size_t space = line.rfind(' ');
    if (mark != std::string_view::npos && (space == std::string_view::npos || mark > space)) {
      begin += mark + may_break.size();
      lines.insert(begin, "\\\n");
      begin += 2;
      continue;
    }
    space = lines.find(' ', space == std::string_view::npos ? begin + longest : begin + space);
    if (space == std::string::npos) break;
    lines[space] = '\n';
    begin = space + 1;
  }
  return lines + '\n';
}

// The line of a page's name, which is also read by programs that know no places to break.
std::string name_line(const std::string& name, std::string_view does) {
  std::string line = lines_of(name + " - " + std::string(does.substr(0, does.find_last_not_of('.') + 1)));
  replace_all(line, may_break, "");
  return line;
}

std::string section(std::string_view english, std::string_view chinese) {
  return fmt::format(".SH {}\n", in_either(english, chinese));
}

std::string entry(const std::string& label, std::string_view text) {
  return ".TP\n" + label + '\n' + lines_of(text);
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

// The name of a command's page: "minimind-chat".
std::string page_of(const CLI::App& command) {
  return command.get_parent() ? "minimind-" + command.get_name() : command.get_name();
}

std::string synopsis_of(const CLI::App& command) {
  const std::string call = call_of(command);
  const std::size_t name = std::string("minimind").size() + (command.get_parent() ? 1 + command.get_name().size() : 0);
  return bold(std::string_view(call).substr(0, name)) + escaped(std::string_view(call).substr(name)) + '\n';
}

std::string command_entries(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    text += entry(bold(page_of(*command)) + "(1)", in_language(command->get_description()));
  }
  return text.empty() ? "" : section("COMMANDS", "命令") + text;
}

// "-m, --model MODEL" with the names in bold and the value in italics.
std::string label_in_roff(const CLI::Option& option) {
  std::string label = label_of(option);
  label.erase(0, label.find_first_not_of(' '));
  if (!takes_value(option)) return bold(label);
  const std::size_t value = label.rfind(' ');
  return bold(std::string_view(label).substr(0, value)) + " \\fI" + escaped(label.substr(value + 1)) + "\\fR";
}

std::string option_entries(const CLI::App& command) {
  std::string positionals, text;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    positionals += entry("\\fI" + escaped(translated(option->get_name(true))) + "\\fR", description_of(*option));
  }
  for (const char* const group : help_groups) {
    std::string entries;
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() || option->get_group() != group) continue;
      entries += entry(label_in_roff(*option), description_of(*option));
    }
    if (!entries.empty()) text += fmt::format(".SS {}\n{}", translated(group), entries);
  }
  return section("OPTIONS", "选项") + positionals + text;
}

std::string example_entries(const CLI::App& command) {
  std::string text;
  for (const HelpExample& example : help_examples()) {
    if (example.command != command.get_name()) continue;
    text += entry(bold(example.call), in_either(example.english, example.chinese));
  }
  return section("EXAMPLES", "示例") + text;
}

std::string status_entries(const CLI::App& command) {
  std::string text = section("EXIT STATUS", "退出状态");
  text += entry(bold("0"), in_either("done", "完成"));
  text += entry(bold("1"), in_either("failure, such as a file that cannot be read", "失败，如文件无法读取"));
  text += entry(bold("2"), in_either("usage error", "用法错误"));
  if (command.get_name() == "validate") {
    text += entry(bold("3"), in_either("it cannot be told whether the text conforms", "无法判断文本是否符合"));
  }
  return text + entry(bold("130"), in_either("interrupted by Ctrl-C", "被 Ctrl-C 中断"));
}

// The other commands, or the program's page.
std::string see_also(const CLI::App& command) {
  const CLI::App* const program = command.get_parent();
  return program ? section("SEE ALSO", "参见") + bold(page_of(*program)) + "(1)\n" : "";
}

}  // namespace

std::string man_page_of(const CLI::App& command) {
  std::string name = page_of(command);
  const std::string named = name_line(name, std::string(in_language(command.get_description())));
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  // Without lines of equal width and hyphens, which Chinese and options do not bear.
  std::string text =
      fmt::format(".TH {} 1 {} \"minimind {}\"\n.ad l\n.nh\n", escaped(name), MINIMIND_DATE, MINIMIND_VERSION);
  text += section("NAME", "名称") + named + section("SYNOPSIS", "概述") + synopsis_of(command);
  const CLI::App* const program = command.get_parent();  // whose footer CLI11 gives to commands that have none
  if (!command.get_footer().empty() && !(program && command.get_footer() == program->get_footer())) {
    text += section("DESCRIPTION", "描述") + lines_of(in_language(command.get_footer()));
  }
  return text + command_entries(command) + option_entries(command) + example_entries(command) +
         status_entries(command) + see_also(command);
}

}  // namespace minimind
