#define MINIMIND_ARCH xsimd::avx512bw
#define MINIMIND_BLOCKS avx512vnni_blocks
#include "runtime/kernels/all_blocks-inl.h"
