#define MINIMIND_ARCH xsimd::sse2
#define MINIMIND_TABLE simd128
#include "runtime/kernels/kernels-inl.h"
