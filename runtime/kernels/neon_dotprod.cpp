// Products by the dot product of ARMv8.2, for the table of NEON.

#define MINIMIND_ARCH xsimd::neon64
#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"

namespace minimind::kernels {

const ProductOf<Q8Block> neon_dotprod = {block_matmul<Q8Block>};

}  // namespace minimind::kernels
