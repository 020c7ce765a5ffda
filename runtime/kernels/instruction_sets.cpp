#include "runtime/kernels/instruction_sets.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "weights/base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace minimind::kernels {
namespace {

#if defined(__x86_64__)
// clang 16 and 17 have no name for it. Intel's manual, volume 2A.
bool has_f16c() {
  constexpr unsigned f16c = 1U << 29;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & f16c);
}

constexpr InstructionSet plain_sets[] = {
    {[] { return with_q8_0(avx512, avx512vnni, "avx512vnni"); }, has_vnni},
    {[] { return with_q8_0(avx512, avx2.q8_0, "avx512"); }, has_avx512},
    {[] { return avx2; }, has_avx2},
    {[] { return sse2; }, [] { return true; }},
};
#elif defined(__aarch64__)
constexpr InstructionSet plain_sets[] = {{[] { return neon; }, [] { return true; }}};
#elif defined(__wasm__)
constexpr InstructionSet plain_sets[] = {{[] { return simd128; }, [] { return true; }}};
#endif

}  // namespace

constinit const std::span<const InstructionSet> plain_instruction_sets = plain_sets;

#if defined(__x86_64__)
// The compiler's checks, unlike xsimd's, also test that the operating system saves the wide registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}

bool has_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}
#endif

Table with_q8_0(Table table, ProductOf<Q8Block> product, const char* name) {
  table.name = name;
  table.q8_0 = product;
  return table;
}

std::span<const Table> runnable() {
  static const std::vector<Table> tables = [] {
    std::vector<Table> list;
    for (const InstructionSet& set : instruction_sets) {
      if (set.runs_here()) list.push_back(set.table());
    }
    return list;
  }();
  return tables;
}

const Table& choose() {
  const char* forced = std::getenv("MINIMIND_ISA");
  if (!forced || !*forced) return runnable().front();
  std::string names;
  for (const Table& table : runnable()) {
    if (lower_case(forced) == table.name) return table;
    names += (names.empty() ? "" : ", ") + std::string(table.name);
  }
  throw std::runtime_error("MINIMIND_ISA is \"" + std::string(forced).substr(0, 40) +
                           "\", expected one that this build and machine can run: " + names);
}

}  // namespace minimind::kernels
