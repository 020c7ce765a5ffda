#include "runtime/kernels/all_instruction_sets.h"

#include "runtime/kernels/blocks.h"
#include "runtime/kernels/instruction_sets.h"
#include "weights/base/x86_features.h"

#if defined(__x86_64__)
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace minimind::kernels {
namespace {

Table with_blocks(Table table, const BlockProducts& blocks) {
  table.blocks = &blocks;
  table.i8 = blocks;
  return table;
}

template <class... Blocks>
void replace(BlockProducts& products, const ProductsOf<Blocks...>& by) {
  ((static_cast<ProductOf<Blocks>&>(products) = by), ...);
}

// Returns the table with the products `by`, and for other blocks those of a dot product.
template <const BlockProducts& dot_products, const MatrixProducts& by>
Table with_matrices(const Table& table, const char* name) {
  static const BlockProducts blocks = [] {
    BlockProducts products = dot_products;
    replace(products, by.blocks);
    if (by.multiply_rows) products.rows.multiply = by.multiply_rows;
    products.multiply_add = by.multiply_add;
    products.multiply_adds_per_round = by.multiply_adds_per_round;
    return products;
  }();
  return with_blocks(with_q8_0(table, by.q8_0, name), blocks);
}

#if defined(__x86_64__)
// GCC does not compile tiles for Windows, and no Mac has them.
#if defined(__linux__)
// Asks Linux, once, for the 8 KB of tiles in the state of every thread.
bool has_tiles() {
  if (!x86_features().amx_tile) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool permitted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return permitted;
}

bool has_amx() {
  return x86_features().avx512vnni && x86_features().amx_int8 && has_tiles();
}
#endif

constexpr InstructionSet all_sets[] = {
#if defined(__linux__)
    {[] { return with_matrices<avx512vnni_blocks, amxint8>(avx512, "amxint8"); }, has_amx},
#endif
    {[] { return with_blocks(with_q8_0(avx512, avx512vnni, "avx512vnni"), avx512vnni_blocks); },
     [] { return x86_features().avx512vnni; }},
    {[] { return with_blocks(with_q8_0(avx512, avx2.q8_0, "avx512"), avx2_blocks); },
     [] { return x86_features().avx512; }},
    {[] { return with_blocks(with_q8_0(avx2, avxvnni, "avxvnni"), avxvnni_blocks); },
     [] { return x86_features().avx_vnni; }},
    {[] { return with_blocks(avx2, avx2_blocks); }, [] { return x86_features().avx2; }},
    {[] { return with_blocks(sse2, sse2_blocks); }, [] { return true; }},
};
#elif defined(__aarch64__)
bool has_dot_product() {
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

bool has_matrix_product() {
  return has_dot_product() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM);
}

constexpr InstructionSet all_sets[] = {
    {[] { return with_matrices<neon_dotprod_blocks, neon_i8mm>(neon, "neon_i8mm"); }, has_matrix_product},
    {[] { return with_blocks(with_q8_0(neon, neon_dotprod, "neon_dotprod"), neon_dotprod_blocks); }, has_dot_product},
    {[] { return with_blocks(neon, neon_blocks); }, [] { return true; }},
};
#elif defined(__wasm__)
constexpr InstructionSet all_sets[] = {{[] { return with_blocks(simd128, simd128_blocks); }, [] { return true; }}};
#endif

}  // namespace

constinit const std::span<const InstructionSet> instruction_sets = all_sets;

Bf16List runnable_bf16() {
  Bf16List list{};
#if defined(__x86_64__)
  if (!x86_features().avx512vnni || !x86_features().avx512bf16) return list;
#if defined(__linux__)
  if (x86_features().amx_bf16 && has_tiles()) list.products[list.count++] = &amxbf16;
#endif
  list.products[list.count++] = &avx512bf16;
#endif
  return list;
}

const Table* with_bf16(const Table& table) {
  const Bf16List list = runnable_bf16();
  if (list.count == 0 || &table != &runnable().front()) return nullptr;
  static const Table best = [&] {
    Table copy = table;
    copy.bf16 = list.products[0];
    return copy;
  }();
  return &best;
}

}  // namespace minimind::kernels
