// The table of generation_parameters, and the places that cannot read it: each of them must name every parameter.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "runtime/generate/check_sampling.h"
#include "runtime/generate/sampling_options.h"

namespace minimind {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(MINIMIND_SOURCE_DIR "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SamplingParameters, TheDefaultsAndWhatChangesNothingAreInTheirRanges) {
  EXPECT_NO_THROW(check(SamplingOptions()));
  EXPECT_NO_THROW(check(sampling_off()));
  EXPECT_EQ(sampling_off().temperature, 1);
}

TEST(SamplingParameters, ANumberThatIsSetIsTheOneThatIsRead) {
  for (const GenerationParameter& parameter : generation_parameters) {
    if (!parameter.is_number()) continue;
    GenerationParameters parameters;
    parameter.set(parameters, parameter.most);
    EXPECT_EQ(parameter.of(parameters), parameter.most) << parameter.name;
    for (const GenerationParameter& other : generation_parameters) {
      if (&other == &parameter || !other.is_number()) continue;
      EXPECT_EQ(other.of(parameters), other.of({})) << parameter.name << " and " << other.name;
    }
  }
}

TEST(SamplingParameters, ANumberThatIsOutOfRangeOrNotWholeIsAnError) {
  GenerationParameters parameters;
  const auto top_k = std::ranges::find(generation_parameters, "top_k", &GenerationParameter::name);
  for (const double number : {-1.0, 1.5, 1e300, std::nan("")}) {
    EXPECT_THROW(top_k->set(parameters, number), ParameterError) << number;
  }
}

TEST(SamplingParameters, TheHeaderOfCAndThePackageOfPythonHaveThemAll) {
  const std::string header = contents("runtime/api/minimind.h"),
                    library = contents("tools/python/minimind_cpp/_library.py"),
                    sampling = contents("tools/python/minimind_cpp/sampling.py"),
                    functions = contents("runtime/api/functions.cpp");
  for (const GenerationParameter& parameter : generation_parameters) {
    const std::string name(parameter.name), quoted = "\"" + name + "\"";
    EXPECT_GE(count(header, name), 1u) << name;
    EXPECT_EQ(count(library, "(" + quoted + ", "), 1u) << name;
    EXPECT_EQ(count(sampling, "\n    " + name + ": "), 1u) << name;
    EXPECT_GE(count(sampling, quoted), parameter.is_number() ? 1u : 0u) << name;
    EXPECT_EQ(count(functions, "copy(request." + name + ","), parameter.is_number() ? 1u : 0u) << name;
  }
}

// The part of a text after `start` and before the next `end`.
std::string between(const std::string& text, const std::string& start, const std::string& end) {
  const std::size_t begin = text.find(start) + start.size();
  return text.substr(begin, text.find(end, begin) - begin);
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

// What a text must say is the default of a parameter; std::nullopt if it is not a number.
std::optional<std::string> default_of(const std::string& name) {
  const auto parameter = std::ranges::find(generation_parameters, name, &GenerationParameter::name);
  if (parameter == std::end(generation_parameters) || !parameter->is_number()) return std::nullopt;
  return fmt::format("{}", parameter->of({}));
}

const std::string& request_of_c() {
  static const std::string text =
      between(contents("runtime/api/minimind.h"), "typedef struct minimind_request {", "} minimind_request;");
  return text;
}

// A line declares members of one type, and its comment starts with their defaults, separated by commas.
TEST(SamplingParameters, TheHeaderOfCHasTheirDefaults) {
  std::size_t checked = 0;
  const std::regex declaration(R"(^ *(?:double|size_t) ([a-z_, ]+); */\* ([0-9., ]*[0-9]))");
  for (const std::string& line : matches(request_of_c(), std::regex("([^\n]+)"))) {
    std::smatch parts;
    if (!std::regex_search(line, parts, declaration)) continue;
    const std::vector<std::string> names = matches(parts[1], std::regex("([a-z_]+)")),
                                   defaults = matches(parts[2], std::regex("([0-9.]+)"));
    ASSERT_EQ(names.size(), defaults.size()) << line;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(default_of(names[i]), defaults[i]) << names[i];
      ++checked;
    }
  }
  EXPECT_EQ(checked, std::ranges::count_if(generation_parameters, &GenerationParameter::is_number));
}

TEST(SamplingParameters, TheClassOfPythonHasTheirDefaults) {
  const std::string page = contents("tools/python/minimind_cpp/sampling.py");
  std::size_t checked = 0;
  const std::regex stated(R"(\n    ([a-z_]+): (?:int|float) = ([0-9]+(?:\.[0-9]*[1-9])?))");
  for (std::sregex_iterator match(page.begin(), page.end(), stated), end; match != end; ++match) {
    const std::optional<std::string> expected = default_of((*match)[1]);
    if (!expected) continue;
    EXPECT_EQ(expected, (*match)[2].str()) << (*match)[1];
    ++checked;
  }
  EXPECT_EQ(checked, std::ranges::count_if(generation_parameters, &GenerationParameter::is_number));
}

// Each member by its name: a pointer to it, or several of a type on one line.
TEST(SamplingParameters, TheStructureOfPythonHasTheMembersOfCInTheirOrder) {
  std::string members = std::regex_replace(request_of_c(), std::regex(R"(/\*[^*]*\*/)"), "");
  const std::vector<std::string> of_c = matches(members, std::regex(R"(([a-z_]+) *[,;])"));
  const std::string structure =
      between(contents("tools/python/minimind_cpp/_library.py"), "class Request(Structure):", "\n\n\n");
  EXPECT_EQ(of_c, matches(structure, std::regex("\\(\"([a-z_]+)\", ")));
}

}  // namespace
}  // namespace minimind
