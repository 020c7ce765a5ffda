#define MINIMIND_ARCH xsimd::avx512bw
#define MINIMIND_TABLE avx512vnni
#include "runtime/kernels/kernels-inl.h"
