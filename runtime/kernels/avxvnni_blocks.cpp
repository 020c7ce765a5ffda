#define MINIMIND_ARCH xsimd::fma3<xsimd::avx2>
#define MINIMIND_BLOCKS avxvnni_blocks
#include "runtime/kernels/all_blocks-inl.h"
