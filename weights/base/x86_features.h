#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace minimind {

// The instructions that this processor has, and whose registers the system keeps for each thread. Compilers differ in
// the names that their own check knows, and some lack it.
struct X86Features {
  bool sha = false, avx2 = false, avx_vnni = false;             // avx2 with FMA and F16C
  bool avx512 = false, avx512vnni = false, avx512bf16 = false;  // F, BW, CD, DQ and VL
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false;    // Linux gives a thread the tiles only on request
};

// Asks the processor. The bits are in Intel's manual, volume 2A at CPUID, and volume 1 at XCR0.
inline X86Features read_x86_features() {
  unsigned a = 0, b = 0, c = 0, d = 0, saved = 0;
  X86Features has;
  __get_cpuid(1, &a, &b, &c, &d);
  const auto all = [](unsigned in, auto... bits) { return ((in >> bits & 1) & ...) != 0; };
  if (all(c, 27)) asm("xgetbv" : "=a"(saved) : "c"(0) : "edx");
  const bool sse4_1 = all(c, 19), avx_fma_f16c = all(c, 28, 12, 29) && all(saved, 1, 2);
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return has;
  has.sha = sse4_1 && all(b, 29);
  has.avx2 = avx_fma_f16c && all(b, 5);
  has.avx512 = has.avx2 && all(saved, 5, 6, 7) && all(b, 16, 17, 28, 30, 31);
  has.avx512vnni = has.avx512 && all(c, 11);
  has.amx_tile = all(saved, 17, 18) && all(d, 24);
  has.amx_int8 = has.amx_tile && all(d, 25);
  has.amx_bf16 = has.amx_tile && all(d, 22);
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return has;
  has.avx_vnni = has.avx2 && all(a, 4);
  has.avx512bf16 = has.avx512 && all(a, 5);
  return has;
}

// Asked once: a virtual machine answers each CPUID by a detour through its host.
inline const X86Features& x86_features() {
  static const X86Features features = read_x86_features();
  return features;
}

}  // namespace minimind
#endif
