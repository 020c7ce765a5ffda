#include "tools/version.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <utf8proc.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <boost/version.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>
#include <xsimd/config/xsimd_config.hpp>

#include "runtime/kernels/instruction_sets.h"

// In tools/embedded_files.S.
extern "C" {
extern const char source_commit[], source_commit_end[];
}

namespace minimind {
namespace {

std::string three_numbers(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// "12.2.0" from the macros that GCC has; clang's own text names it.
std::string compiler() {
#if defined(__clang__)
  return __VERSION__;
#else
  return fmt::format("GCC {}", three_numbers(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
#endif
}

std::string libraries() {
  return fmt::format(
      "Boost {}, CLI11 {}, fmt {}, nlohmann-json {}, utf8proc {}, xsimd {}, zlib {}",
      three_numbers(BOOST_VERSION / 100'000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100), CLI11_VERSION,
      three_numbers(FMT_VERSION / 10'000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
      three_numbers(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH),
      utf8proc_version(), three_numbers(XSIMD_VERSION_MAJOR, XSIMD_VERSION_MINOR, XSIMD_VERSION_PATCH), zlibVersion());
}

}  // namespace

std::string version_text() {
  const std::string_view commit(source_commit, static_cast<std::size_t>(source_commit_end - source_commit));
  std::vector<const char*> names;
  for (const kernels::Table& table : kernels::runnable()) names.push_back(table.name);
  return fmt::format("minimind {}\ncommit: {}\ncompiler: {}\ninstruction sets of this machine: {}\nlibraries: {}",
                     MINIMIND_VERSION, commit.empty() ? "unknown" : commit, compiler(), fmt::join(names, ", "),
                     libraries());
}

}  // namespace minimind
