// Products by AVX512_VNNI, for the table of AVX-512.

#define MINIMIND_ARCH xsimd::avx512bw
#include "runtime/kernels/block_matmul-inl.h"

namespace minimind::kernels {

const ProductOf<Q8Block> avx512vnni = {block_matmul<Q8Block>};

}  // namespace minimind::kernels
