// Products by AVX-VNNI, for the table of AVX2.

#define MINIMIND_ARCH xsimd::fma3<xsimd::avx2>
#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"

namespace minimind::kernels {

const ProductOf<Q8Block> avxvnni = {block_matmul<Q8Block>};

}  // namespace minimind::kernels
