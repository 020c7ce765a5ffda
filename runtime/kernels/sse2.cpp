#define MINIMIND_ARCH xsimd::sse2
#define MINIMIND_TABLE sse2
#include "runtime/kernels/kernels-inl.h"
