#pragma once

#define AT_HWCAP 16

// All of Apple's processors that macOS 11 runs on have the dot product.
inline unsigned long getauxval(unsigned long) {
  return 1;
}
