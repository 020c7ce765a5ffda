#include "weights/base/x86_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace minimind {
namespace {

#if defined(__x86_64__) && defined(__linux__)
// The names that Linux gives to the features of the first processor.
std::set<std::string> features_that_linux_names() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  std::istringstream words(line.substr(line.find(':') + 1));
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(X86Features, AreThoseThatLinuxNames) {
  const std::set<std::string> flags = features_that_linux_names();
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  const auto all = [&](auto... wanted) { return (flags.contains(wanted) && ...); };
  const bool avx2 = all("avx2", "fma", "f16c");
  const bool avx512 = avx2 && all("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl");
  const X86Features found = x86_features();
  EXPECT_EQ(found.sha, all("sha_ni", "sse4_1"));
  EXPECT_EQ(found.avx2, avx2);
  EXPECT_EQ(found.avx_vnni, avx2 && all("avx_vnni"));
  EXPECT_EQ(found.avx512, avx512);
  EXPECT_EQ(found.avx512vnni, avx512 && all("avx512_vnni"));
  EXPECT_EQ(found.avx512bf16, avx512 && all("avx512_bf16"));
  EXPECT_EQ(found.amx_tile, all("amx_tile"));
  EXPECT_EQ(found.amx_int8, all("amx_tile", "amx_int8"));
  EXPECT_EQ(found.amx_bf16, all("amx_tile", "amx_bf16"));
}

TEST(X86Features, AreThoseThatTheCompilerFinds) {
  const X86Features found = x86_features();
  EXPECT_EQ(found.avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(found.avx512vnni,
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && found.avx512);
  EXPECT_EQ(found.avx512bf16, __builtin_cpu_supports("avx512bf16") && found.avx512);
}
#endif

}  // namespace
}  // namespace minimind
