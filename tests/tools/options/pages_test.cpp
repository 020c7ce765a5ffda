// What pages say of options and of generation parameters is written from the program:
//   MINIMIND_WRITE_PAGES=1 build/release/minimind_tests --gtest_filter='Pages.*'
//
// A part of a page is written if it stands between two marks:
//   <!-- options: Model --> or <!-- options: --host --port -->   a table of a group of options, or of some
//   <!-- parameters -->                                          the generation parameters, as options
//   <!-- fields -->                                              the same, as fields of a request
//   <!-- weight types -->                                        what becomes of each type of weights
//   <!-- end -->
// The marks 选项, 参数, 字段 and 权重类型 are for Chinese. In JavaScript, the marks are lines that start with //.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "runtime/generate/sampling_options.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

std::string option_name(const SamplingParameter& parameter) {
  std::string option = "--" + std::string(parameter.name);
  std::ranges::replace(option, '_', '-');
  return option;
}

bool is_parameter(const CLI::Option& option) {
  return std::ranges::any_of(sampling_parameters, [&](const auto& one) { return option.check_name(option_name(one)); });
}

std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

struct Row {
  std::string option, does;
  std::vector<std::string> commands;
};

// Whether a table with this mark lists the option.
bool is_asked_for(const CLI::Option& option, const std::string& asked) {
  if (option.get_positional()) return false;
  if (!asked.starts_with("--")) return option.get_group() == asked && !is_parameter(option);
  std::istringstream names(asked);
  for (std::string name; names >> name;) {
    if (option.check_name(name)) return true;
  }
  return false;
}

std::string table_of_options(const std::string& asked) {
  const CommandLine command_line;
  const auto commands = command_line.app().get_subcommands({});
  std::vector<Row> rows;
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      if (!is_asked_for(*option, asked)) continue;
      std::string label = label_of(*option);
      label.erase(0, label.find_first_not_of(' '));
      const std::string does = description_of(*option);
      auto row = std::ranges::find_if(rows, [&](const Row& one) { return one.option == label && one.does == does; });
      if (row == rows.end()) row = rows.insert(row, {label, does, {}});
      row->commands.push_back(command->get_name());
    }
  }
  const bool english = language() == Language::english;
  std::string table = english ? "| option | of | does |\n|---|---|---|\n" : "| 选项 | 命令 | 作用 |\n|---|---|---|\n";
  for (const Row& row : rows) {
    std::vector<std::string> others;
    for (const CLI::App* command : commands) {
      if (std::ranges::count(row.commands, command->get_name()) == 0) others.push_back(command->get_name());
    }
    std::string of = fmt::format("{}", fmt::join(row.commands, english ? ", " : "、"));
    if (others.size() < row.commands.size()) {
      of = fmt::format(fmt::runtime(english ? "all but {}" : "除 {} 外"), fmt::join(others, english ? ", " : "、"));
    }
    if (others.empty()) of = english ? "all" : "全部";
    table += fmt::format("| `{}` | {} | {} |\n", cell(row.option), of, cell(row.does));
  }
  return table;
}

std::string table_of_parameters(bool as_fields) {
  const bool english = language() == Language::english;
  std::string table = english ? fmt::format("| {} | range | default | does |\n", as_fields ? "field" : "option")
                              : fmt::format("| {} | 范围 | 默认值 | 作用 |\n", as_fields ? "字段" : "选项");
  table += "|---|---|---|---|\n";
  for (const SamplingParameter& parameter : sampling_parameters) {
    std::string name = fmt::format("`{}`", as_fields ? std::string(parameter.name) : option_name(parameter));
    if (as_fields && !parameter.alias.empty()) name += fmt::format("{}`{}`", english ? ", " : "、", parameter.alias);
    const std::string range =
        fmt::format("{}{} 到 {}", parameter.or_zero ? "0，或 " : "", parameter.least, parameter.most);
    table += fmt::format("| {} | {} | {} | {} |\n", name, english ? parameter.range() : range, parameter.of({}),
                         english ? parameter.help : parameter.chinese_help);
  }
  return table;
}

std::string table_of_weight_types() {
  const bool english = language() == Language::english;
  std::string table = english ? "| types | in memory | written |\n" : "| 类型 | 内存中 | 可写出 |\n";
  table += "|---|---|---|\n";
  for (const auto& [kept, written] : {std::pair{true, true}, {true, false}, {false, false}}) {
    std::vector<std::string_view> names;
    for (const DTypeRow& row : dtype_rows) {
      if (!is_float_type(row.type) && !is_block_type(row.type)) continue;
      if ((find_matrix_format(row.type) != nullptr) == kept && is_weight_type(row.type) == written) {
        names.push_back(row.name);
      }
    }
    table += fmt::format("| {} | {} | {} |\n", fmt::join(names, english ? ", " : "、"),
                         kept ? (english ? "as stored" : "按原类型") : (english ? "as f32" : "转为 f32"),
                         written ? (english ? "yes" : "是") : (english ? "no" : "否"));
  }
  return table;
}

std::string script_of_parameters() {
  std::string lines = "const PARAMETERS = {\n";
  for (const SamplingParameter& parameter : sampling_parameters) {
    lines += fmt::format("  {}: {{value: {}, least: {}, most: {}, whole: {}}},\n", parameter.name, parameter.of({}),
                         parameter.or_zero ? 0 : parameter.least, parameter.most, parameter.value.index() == 1);
  }
  return lines + fmt::format("  max_tokens: {{least: 1, most: {}, whole: true}},\n}};\n", largest_whole);
}

// Returns what stands below a mark, whose words are given.
std::string written_for(const std::string& mark) {
  const auto after = [&](std::string_view start) { return mark.substr(start.size()); };
  const bool chinese = mark.starts_with("选项") || mark == "参数" || mark == "字段" || mark == "权重类型";
  set_language(chinese ? Language::chinese : Language::english);
  std::string text;
  if (mark.starts_with("options: ")) text = table_of_options(after("options: "));
  if (mark.starts_with("选项: ")) text = table_of_options(after("选项: "));
  if (mark == "parameters" || mark == "参数") text = table_of_parameters(false);
  if (mark == "fields" || mark == "字段") text = table_of_parameters(true);
  if (mark == "weight types" || mark == "权重类型") text = table_of_weight_types();
  if (mark == "parameters of the page") text = script_of_parameters();
  set_language(Language::english);
  EXPECT_NE(text, "") << "nothing is written for the mark " << mark;
  return text;
}

std::string read_page(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the page with what the program writes, and the marks that it has.
std::string rewritten(const std::string& page, std::vector<std::string>& marks) {
  const bool script = page.starts_with("//");
  const std::string begin = script ? "// <" : "<!-- ", close = script ? ">\n" : " -->\n";
  const std::string end = begin + "end" + close;
  std::string text;
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    line += '\n';
    const bool is_end = line == end;
    if (!inside || is_end) text += line;
    if (is_end) inside = false;
    if (is_end || inside || !line.starts_with(begin) || !line.ends_with(close)) continue;
    const std::string mark = line.substr(begin.size(), line.size() - begin.size() - close.size());
    marks.push_back(mark);
    text += written_for(mark);
    inside = true;
  }
  return text;
}

TEST(Pages, SayWhatTheProgramSaysInBothLanguages) {
  std::vector<std::string> marks;
  for (const char* const path : {"tools/commands/README.md", "tools/http/README.md", "tools/serve/API.md",
                                 "tools/serve/page/settings.js", "weights/README.md"}) {
    const std::string file = fmt::format("{}/{}", MINIMIND_SOURCE_DIR, path), found = read_page(file);
    const std::string expected = rewritten(found, marks);
    if (std::getenv("MINIMIND_WRITE_PAGES")) std::ofstream(file) << expected;
    EXPECT_EQ(found, expected) << path;
  }
  for (const char* const group : help_groups) {
    EXPECT_EQ(std::ranges::count(marks, fmt::format("options: {}", group)), 1) << group;
    EXPECT_EQ(std::ranges::count(marks, fmt::format("选项: {}", group)), 1) << group;
  }
  for (const char* const mark :
       {"parameters", "参数", "fields", "字段", "weight types", "权重类型", "parameters of the page"}) {
    EXPECT_EQ(std::ranges::count(marks, mark), 1) << mark;
  }
}

}  // namespace
}  // namespace minimind
