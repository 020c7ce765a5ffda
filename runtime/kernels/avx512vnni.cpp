// Products by AVX512_VNNI, for the table of AVX-512.

#define MINIMIND_ARCH xsimd::avx512bw
#include "runtime/kernels/block_matmul-inl.h"

namespace minimind::kernels {

const Int8Products avx512vnni = {.matmul_q8_0 = block_matmul<Q8Block>, .matmul_i8 = block_matmul<I8Block>};

}  // namespace minimind::kernels
