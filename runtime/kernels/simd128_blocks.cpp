#define MINIMIND_ARCH xsimd::sse2
#define MINIMIND_BLOCKS simd128_blocks
#include "runtime/kernels/all_blocks-inl.h"
