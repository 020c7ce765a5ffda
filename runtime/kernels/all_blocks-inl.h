#pragma once

// Included by tables of kernels only: products of all block types besides q8_0. Each instruction set's _blocks.cpp
// defines MINIMIND_ARCH, as its other files do, and MINIMIND_BLOCKS, the name of its products.

#include "runtime/kernels/block_matmul-inl.h"
#include "runtime/kernels/blocks.h"
#include "runtime/kernels/int8_dot-inl.h"
#include "runtime/kernels/part_matmul-inl.h"
#include "weights/tensor/dtype.h"

namespace minimind::kernels {
namespace {

inline Group load_nibbles(const NibbleBlock& block, std::size_t group) {
  return group < groups / 2 ? load_nibbles<false>(block.nibbles[group])
                            : load_nibbles<true>(block.nibbles[group - groups / 2]);
}

template <>
struct BlockWeights<Q4Block> {
  using Dot = UnsignedDot<4, 8>;
  static constexpr bool is_packed = true;
  static Group load(const Q4Block& block, std::size_t group) { return load_nibbles(block, group); }
};
template <>
struct BlockWeights<Iq4NlBlock> {
  using Dot = CodeDot;
  static constexpr bool is_packed = true;
  static Group load(const Iq4NlBlock& block, std::size_t group) {
    return look_up(iq4_nl_codes, load_nibbles(block, group));
  }
};

}  // namespace

const BlockProducts MINIMIND_BLOCKS = {
    .matmul_q4_0 = block_matmul<Q4Block>,
    .matmul_iq4_nl = block_matmul<Iq4NlBlock>,
    .matmul_q4_1 = part_matmul<Q41Block>,
    .matmul_q5_0 = part_matmul<Q50Block>,
    .matmul_q5_1 = part_matmul<Q51Block>,
    .matmul_q4_k = part_matmul<Q4KBlock>,
    .matmul_q5_k = part_matmul<Q5KBlock>,
    .matmul_q6_k = part_matmul<Q6KBlock>,
    .matmul_q2_k = part_matmul<Q2KBlock>,
    .matmul_q3_k = part_matmul<Q3KBlock>,
    .matmul_iq4_xs = part_matmul<Iq4XsBlock>,
};

}  // namespace minimind::kernels
