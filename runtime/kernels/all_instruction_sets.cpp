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

template <class... Blocks>
void replace(BlockProducts& products, const ProductsOf<Blocks...>& by) {
  ((static_cast<ProductOf<Blocks>&>(products) = by), ...);
}

BlockProducts vnni_with_amx() {
  BlockProducts products = avx512vnni_blocks;
  replace(products, amxint8.blocks);
  products.multiply_add = amxint8.multiply_add;
  products.multiply_adds_per_round = amxint8.multiply_adds_per_round;
  return products;
}

Table avx512_with_amx() {
  static const BlockProducts blocks = vnni_with_amx();
  return with_blocks(with_q8_0(avx512, amxint8.q8_0, "amxint8"), blocks);
}
#endif

constexpr InstructionSet all_sets[] = {
#if defined(__linux__)
    {avx512_with_amx, has_amx},
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

constexpr InstructionSet all_sets[] = {
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
