#include "runtime/kernels/instruction_sets.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "weights/base/text.h"
#include "weights/base/x86_features.h"

namespace minimind::kernels {
namespace {

#if defined(__x86_64__)
constexpr InstructionSet plain_sets[] = {
    {[] { return with_q8_0(avx512, avx512vnni, "avx512vnni"); }, [] { return x86_features().avx512vnni; }},
    {[] { return with_q8_0(avx512, avx2.q8_0, "avx512"); }, [] { return x86_features().avx512; }},
    {[] { return avx2; }, [] { return x86_features().avx2; }},
    {[] { return sse2; }, [] { return true; }},
};
#elif defined(__aarch64__)
constexpr InstructionSet plain_sets[] = {{[] { return neon; }, [] { return true; }}};
#elif defined(__wasm__)
constexpr InstructionSet plain_sets[] = {{[] { return simd128; }, [] { return true; }}};
#endif

}  // namespace

constinit const std::span<const InstructionSet> plain_instruction_sets = plain_sets;

Table with_q8_0(Table table, ProductOf<Q8Block> product, const char* name) {
  table.name = name;
  table.q8_0 = product;
  return table;
}

std::span<const Table> runnable() {
  // Not destroyed at exit, because threads of a program that uses the library may still compute then.
  static const std::vector<Table>* const tables = [] {
    auto* const list = new std::vector<Table>;
    for (const InstructionSet& set : instruction_sets) {
      if (set.runs_here()) list->push_back(set.table());
    }
    return list;
  }();
  return *tables;
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
