// Products by AVX512_VNNI, for the table of AVX-512.

#define MINIMIND_ARCH xsimd::avx512bw
#include "runtime/kernels/block_matmul-inl.h"

namespace minimind::kernels {

const Int8Products avx512vnni = {{block_matmul<Q8Block>}, {block_matmul<I8Block>}};

}  // namespace minimind::kernels
