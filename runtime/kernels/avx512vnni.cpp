// Products by AVX512_VNNI, for the table of AVX-512.

#define MINIMIND_ARCH xsimd::avx512bw
#include "runtime/kernels/int8_products-inl.h"

namespace minimind::kernels {

const Int8Products avx512vnni = int8_products;

}  // namespace minimind::kernels
