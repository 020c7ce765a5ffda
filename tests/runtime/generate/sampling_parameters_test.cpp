// The table of generation_parameters, and the places that cannot read it: each of them must name every parameter.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

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

TEST(SamplingParameters, TheHeaderOfCAndThePackageOfPythonHaveThemAll) {
  const std::string header = contents("runtime/api/minimind.h"),
                    library = contents("tools/python/minimind_cpp/_library.py"),
                    arguments = contents("tools/python/minimind_cpp/_arguments.py"),
                    model = contents("tools/python/minimind_cpp/model.py"),
                    functions = contents("runtime/api/functions.cpp");
  for (const GenerationParameter& parameter : generation_parameters) {
    const std::string name(parameter.name), quoted = "\"" + name + "\"";
    EXPECT_GE(count(header, name), 1u) << name;
    EXPECT_EQ(count(library, "(" + quoted + ", "), 1u) << name;
    EXPECT_GE(count(arguments, quoted), 1u) << name;
    EXPECT_GE(count(model, name), 1u) << name;
    EXPECT_EQ(count(functions, "copy(request." + name + ","), parameter.is_number() ? 1u : 0u) << name;
  }
}

}  // namespace
}  // namespace minimind
