#pragma once

#include <asm/hwcap.h>
#include <sys/sysctl.h>

#include <cstddef>

#define AT_HWCAP 16
#define AT_HWCAP2 26

// All of Apple's processors that macOS 11 runs on have the dot product; the matrix product came with the M2.
inline unsigned long getauxval(unsigned long type) {
  if (type == AT_HWCAP) return HWCAP_ASIMDDP;
  int has_i8mm = 0;
  std::size_t size = sizeof has_i8mm;
  sysctlbyname("hw.optional.arm.FEAT_I8MM", &has_i8mm, &size, nullptr, 0);
  return has_i8mm ? HWCAP2_I8MM : 0;
}
