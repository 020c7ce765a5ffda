// The table of sampling parameters in tools/commands/README.md is written from sampling_parameters:
//   MINIMIND_WRITE_PAGES=1 build/release/minimind_tests --gtest_filter='SamplingTable.*'

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "runtime/generate/sampling_options.h"
#include "tools/terminal/language.h"

namespace minimind {
namespace {

const std::string page = MINIMIND_SOURCE_DIR "/tools/commands/README.md";

std::string table_in(Language language, std::string_view header) {
  set_language(language);
  std::string table = fmt::format("{}\n|---|---|---|---|\n", header);
  for (const SamplingParameter& parameter : sampling_parameters) {
    std::string option(parameter.name);
    std::ranges::replace(option, '_', '-');
    table += fmt::format("| `--{}` | {} | {} | {} |\n", option, parameter.range(), parameter.of({}),
                         translated(parameter.help));
  }
  set_language(Language::english);
  return table;
}

// Replaces what is between the two marks.
std::string with_table(const std::string& text, const std::string& marks, const std::string& table) {
  const std::string begin = "<!-- " + marks + " -->\n", end = "<!-- end of " + marks + " -->";
  const std::size_t from = text.find(begin), to = text.find(end);
  if (from == std::string::npos || to == std::string::npos) return "";
  return text.substr(0, from + begin.size()) + table + text.substr(to);
}

TEST(SamplingTable, OfThePageIsThatOfTheProgramInBothLanguages) {
  std::ifstream file(page);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  std::string expected =
      with_table(found, "sampling parameters", table_in(Language::english, "| option | range | default | |"));
  expected = with_table(expected, "采样参数", table_in(Language::chinese, "| 选项 | 范围 | 默认值 | 作用 |"));
  if (std::getenv("MINIMIND_WRITE_PAGES")) std::ofstream(page) << expected;
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace minimind
