// What pages say of options and of generation parameters is written from the program:
//   MINIMIND_WRITE_PAGES=1 build/release/minimind_tests --gtest_filter='Pages.*'
//
// A part of a page is written if it stands between two marks:
//   <!-- options: Model --> or <!-- options: --host --port -->   a table of a group of options, or of some
//   <!-- parameters -->                                          the generation parameters, as options
//   <!-- fields -->                                              the same, as fields of a request
//   <!-- weight types -->                                        what becomes of each type of weights
//   <!-- end -->
// The marks 选项, 参数, 字段 and 权重类型 are for Chinese. In JavaScript, the marks are lines that start with //. In
// the middle of a line, a number is written if it stands between these:
//   <!-- value: stop strings -->64<!-- / -->                      a limit that no option sets

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/packed_matrix.h"
#include "runtime/generate/sampling_options.h"
#include "tools/http/settings.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/text_model.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/serve/api.h"
#include "tools/serve/inside.h"
#include "tools/terminal/language.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

std::string option_name(const GenerationParameter& parameter) {
  std::string option = "--" + std::string(parameter.name);
  std::ranges::replace(option, '_', '-');
  return option;
}

bool is_parameter(const CLI::Option& option) {
  return std::ranges::any_of(generation_parameters,
                             [&](const auto& one) { return option.check_name(option_name(one)); });
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
  const CommandLine command_line(nullptr);
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

// The option of a parameter in each command that has one.
using ParameterOptions = std::vector<std::pair<std::string, const CLI::Option*>>;

ParameterOptions options_of(const CommandLine& command_line, const GenerationParameter& parameter) {
  ParameterOptions options;
  for (const CLI::App* const command : command_line.app().get_subcommands({})) {
    const CLI::Option* const option = command->get_option_no_throw(option_name(parameter));
    if (option) options.emplace_back(command->get_name(), option);
  }
  return options;
}

std::string default_of(const ParameterOptions& options, std::string_view command) {
  const auto found = std::ranges::find(options, command, &ParameterOptions::value_type::first);
  return found == options.end() ? "" : found->second->get_default_str();
}

// Returns the default of the first command, and those of the others where they differ.
std::string defaults_of(const ParameterOptions& options) {
  const std::string usual = options.front().second->get_default_str();
  std::string text = usual;
  for (const auto& [command, option] : options) {
    if (option->get_default_str() != usual) text += fmt::format("; {}: {}", command, option->get_default_str());
  }
  return text;
}

std::string range_of(const GenerationParameter& parameter, bool as_field) {
  const bool english = language() == Language::english;
  if (parameter.name == "seed") return english ? "64 bits" : "64 位";
  if (parameter.is_number()) {
    return english ? parameter.range()
                   : fmt::format("{}{} 到 {}", parameter.or_zero ? "0，或 " : "", parameter.least, parameter.most);
  }
  if (!as_field) return "";
  return fmt::format(fmt::runtime(english ? "up to {} strings of {} bytes" : "最多 {} 个字符串，每个 {} 字节"),
                     BodyFields::most_short_texts, BodyFields::longest_short_text);
}

// Returns the names of a parameter's field: in OpenAI's API, and in others that have a name of their own for it.
std::string fields_of(const GenerationParameter& parameter) {
  const bool english = language() == Language::english;
  std::string text = fmt::format("`{}`", fmt::join(names_of(parameter, Dialect::openai), english ? "`, `" : "`、`"));
  for (const auto& [api, name] : {std::pair{"`/generate`", parameter.sglang}, {"Ollama", parameter.ollama}}) {
    if (!name.empty()) text += fmt::format(fmt::runtime(english ? "; {}: `{}`" : "；{}：`{}`"), api, name);
  }
  return text;
}

std::string table_of_parameters(bool as_fields) {
  const bool english = language() == Language::english;
  const CommandLine command_line(nullptr);
  const std::size_t commands = options_of(command_line, generation_parameters[0]).size();
  std::string table = english ? fmt::format("| {} | range | default | does |\n", as_fields ? "field" : "option")
                              : fmt::format("| {} | 范围 | 默认值 | 作用 |\n", as_fields ? "字段" : "选项");
  table += "|---|---|---|---|\n";
  for (const GenerationParameter& parameter : generation_parameters) {
    const ParameterOptions options = options_of(command_line, parameter);
    std::string label = label_of(*options.front().second), does(english ? parameter.help : parameter.chinese_help);
    label.erase(0, label.find_first_not_of(' '));
    if (!as_fields && options.size() < commands) {
      std::vector<std::string> names;
      for (const auto& [command, option] : options) names.push_back(command);
      does += fmt::format(fmt::runtime(english ? " (only {})" : "（仅 {}）"), fmt::join(names, english ? ", " : "、"));
    }
    table += fmt::format("| {} | {} | {} | {} |\n", as_fields ? fields_of(parameter) : fmt::format("`{}`", label),
                         range_of(parameter, as_fields),
                         as_fields ? default_of(options, "serve") : defaults_of(options), does);
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

// The numbers, with the defaults of the server.
std::string script_of_parameters() {
  const CommandLine command_line(nullptr);
  std::string lines = "const PARAMETERS = {\n";
  for (const GenerationParameter& parameter : generation_parameters) {
    if (parameter.name == "seed") lines += "  seed: {least: 0, most: Number.MAX_SAFE_INTEGER, whole: true},\n";
    if (!parameter.is_number()) continue;
    lines += fmt::format("  {}: {{value: {}, least: {}, most: {}, whole: {}}},\n", parameter.name,
                         default_of(options_of(command_line, parameter), "serve"),
                         parameter.or_zero ? 0 : parameter.least, parameter.most, parameter.value.index() == 1);
  }
  return lines + "};\n";
}

// Limits that no option sets.
const std::map<std::string, std::size_t>& values() {
  using std::chrono::seconds;
  const auto in_seconds = [](std::chrono::milliseconds time) { return static_cast<std::size_t>(time / seconds(1)); };
  static const HttpSettings http;
  static const std::map<std::string, std::size_t> values{
      {"header fields", http.request.fields},
      {"MB of bodies", http.body_memory >> 20},
      {"KB of a body", body_step >> 10},
      {"seconds for a body", in_seconds(http.body_timeout)},
      {"seconds for an answer", in_seconds(http.stall_timeout)},
      {"KB of an answer", answer_step >> 10},
      {"KB behind", http.behind >> 10},
      {"KB hardly behind", http.little() >> 10},
      {"seconds for a large answer", in_seconds(http.large_stall)},
      {"MB of answers", http.answer_memory >> 20},
      {"stop strings", BodyFields::most_short_texts},
      {"bytes of a stop string", BodyFields::longest_short_text},
      {"stop tokens", most_stop_tokens},
      {"MB of texts", most_copied_bytes >> 20},
      {"MB of requests", EngineLimits().task_memory >> 20},
      {"KB of a small request", small_request >> 10},
      {"requests for a free place", most_for_each_free},
      {"log-probabilities", most_log_probabilities},
      {"responses", ResponseStore::most_responses},
      {"MB of responses", ResponseStore::most_bytes >> 20},
      {"MB of waiting bodies", ApiOptions().waiting_bytes >> 20},
      {"seconds for room", in_seconds(ModelShelf::Settings().longest_wait_for_room)},
      {"tokens inside", most_tokens_inside},
      {"weights inside", most_weights_inside},
      {"positions inside", most_positions_inside},
      {"parts inside", most_parts_inside},
  };
  return values;
}

// Returns the line with its values, and adds their names to `marks`.
std::string with_values(std::string line, std::vector<std::string>& marks) {
  const std::string begin = "<!-- value: ", close = " -->", end = "<!-- / -->";
  for (std::size_t at = line.find(begin); at != std::string::npos; at = line.find(begin, at + 1)) {
    const std::size_t name_at = at + begin.size(), name_end = line.find(close, name_at);
    const std::size_t from = name_end + close.size(), to = line.find(end, from);
    const std::string name = line.substr(name_at, name_end - name_at);
    EXPECT_NE(to, std::string::npos) << line;
    EXPECT_TRUE(values().contains(name)) << name;
    if (to == std::string::npos || !values().contains(name)) return line;
    line.replace(from, to - from, std::to_string(values().at(name)));
    marks.push_back(name);
  }
  return line;
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
    if (!inside || is_end) text += with_values(line, marks);
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
  for (const auto& [name, value] : values())
    EXPECT_GE(std::ranges::count(marks, name), 2) << "in two languages: " << name;
}

}  // namespace
}  // namespace minimind
