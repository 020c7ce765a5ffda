#define MINIMIND_ARCH xsimd::fma3<xsimd::avx2>
#define MINIMIND_TABLE avx2
#include "runtime/kernels/kernels-inl.h"
