#define MINIMIND_ARCH xsimd::sse2
#define MINIMIND_BLOCKS sse2_blocks
#include "runtime/kernels/all_blocks-inl.h"
