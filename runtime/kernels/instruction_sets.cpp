#include "runtime/kernels/instruction_sets.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace minimind::kernels {

namespace {

#if defined(__x86_64__)
// Bits of CPUID (Intel's manual, volume 2A) for what clang 16 and 17 have no name.
struct CpuidBits {
  bool f16c = false, amx_bf16 = false, amx_tile = false, amx_int8 = false;
};

CpuidBits cpuid_bits() {
  constexpr unsigned f16c = 1U << 29, amx_bf16 = 1U << 22, amx_tile = 1U << 24, amx_int8 = 1U << 25;
  CpuidBits bits;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) bits.f16c = ecx & f16c;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    bits.amx_bf16 = edx & amx_bf16;
    bits.amx_tile = edx & amx_tile;
    bits.amx_int8 = edx & amx_int8;
  }
  return bits;
}

// The compiler's checks, unlike xsimd's, also test that the operating system saves the wide registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && cpuid_bits().f16c;
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
  if (!cpuid_bits().amx_tile) return false;
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
    if (has_tiles() && cpuid_bits().amx_int8) {
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
  if (has_tiles() && cpuid_bits().amx_bf16) list.products[list.count++] = &amxbf16;
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
