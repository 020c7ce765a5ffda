#define MINIMIND_ARCH xsimd::neon64
#define MINIMIND_BLOCKS neon_dotprod_blocks
#include "runtime/kernels/all_blocks-inl.h"
