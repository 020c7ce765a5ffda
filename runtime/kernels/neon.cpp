#define MINIMIND_ARCH xsimd::neon64
#define MINIMIND_TABLE neon
#include "runtime/kernels/kernels-inl.h"
