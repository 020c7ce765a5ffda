#include "runtime/kernels/instruction_sets.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace minimind::kernels {

namespace {

#if defined(__x86_64__)
// The compiler's checks, unlike xsimd's, also test that the operating system saves the wide registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}

bool has_vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

Table avx512_with(const Int8Products& products, const char* name) {
  Table copy = avx512;
  copy.name = name;
  copy.int8 = products;
  return copy;
}

const Table& avx512_with_avx2() {
  static const Table table = avx512_with(avx2.int8, "avx512");
  return table;
}

const Table& avx512_with_vnni() {
  static const Table table = avx512_with(avx512vnni, "avx512vnni");
  return table;
}

const Table& avx512_with_amx() {
  static const Table table = [] {
    Int8Products products = avx512vnni;
    products.matmul_q8_0 = amxint8.matmul_q8_0;
    products.matmul_q4_0 = amxint8.matmul_q4_0;
    products.matmul_iq4_nl = amxint8.matmul_iq4_nl;
    products.matmul_i8 = amxint8.matmul_i8;
    products.multiply_add = amxint8.multiply_add;
    products.multiply_adds_per_round = amxint8.multiply_adds_per_round;
    return avx512_with(products, "amxint8");
  }();
  return table;
}

// Asks Linux, once, for the 8 KB of tiles in the state of every thread.
bool has_tiles() {
#if defined(__linux__)
  if (!__builtin_cpu_supports("amx-tile")) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool permitted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return permitted;
#else
  return false;
#endif
}
#endif

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

TableList runnable() {
  TableList list{};
#if defined(__x86_64__)
  if (has_vnni()) {
    if (has_tiles() && __builtin_cpu_supports("amx-int8")) {
      list.tables[list.count++] = &avx512_with_amx();
    }
    list.tables[list.count++] = &avx512_with_vnni();
  }
  if (has_avx512()) list.tables[list.count++] = &avx512_with_avx2();
  if (has_avx2()) list.tables[list.count++] = &avx2;
  list.tables[list.count++] = &sse2;
#elif defined(__aarch64__)
  list.tables[list.count++] = &neon;
#endif
  return list;
}

const Table& choose() {
  const TableList list = runnable();
  const char* forced = std::getenv("MINIMIND_ISA");
  if (!forced || !*forced) return *list.tables[0];
  std::string names;
  for (std::size_t i = 0; i < list.count; ++i) {
    if (lower_case(forced) == list.tables[i]->name) return *list.tables[i];
    names += (i > 0 ? ", " : "") + std::string(list.tables[i]->name);
  }
  throw std::runtime_error("MINIMIND_ISA is \"" + std::string(forced).substr(0, 40) +
                           "\", expected one that this build and machine can run: " + names);
}

Bf16List runnable_bf16() {
  Bf16List list{};
#if defined(__x86_64__)
  if (!has_vnni() || !__builtin_cpu_supports("avx512bf16")) return list;
  if (has_tiles() && __builtin_cpu_supports("amx-bf16")) list.products[list.count++] = &amxbf16;
  list.products[list.count++] = &avx512bf16;
#endif
  return list;
}

const Table* with_bf16(const Table& table) {
  const Bf16List list = runnable_bf16();
  if (list.count == 0 || &table != runnable().tables[0]) return nullptr;
  static const Table best = [&] {
    Table copy = table;
    copy.bf16 = list.products[0];
    return copy;
  }();
  return &best;
}

}  // namespace minimind::kernels
