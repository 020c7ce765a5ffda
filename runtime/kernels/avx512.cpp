#define MINIMIND_ARCH xsimd::avx512bw
#define MINIMIND_TABLE avx512
#include "runtime/kernels/kernels-inl.h"
