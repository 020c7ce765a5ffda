#pragma once

#include <cstddef>

#include "runtime/kernels/kernels.h"

namespace minimind {

// One row of a kernel's block of 16 rows. Blocks have the same integers and scales as in a GGUF file, in another order.
// put_block writes one as it is in a file; read_block computes the values, bit for bit those of dequantize().
void put_block(const std::byte* stored, std::size_t row, kernels::Q8Block& out);
void put_block(const std::byte* stored, std::size_t row, kernels::NibbleBlock& out);
template <kernels::PartBlock Block>
void put_block(const std::byte* stored, std::size_t row, Block& out);

void read_block(const kernels::Q8Block& block, std::size_t row, float* out);
void read_block(const kernels::Q4Block& block, std::size_t row, float* out);
void read_block(const kernels::Iq4NlBlock& block, std::size_t row, float* out);
template <kernels::PartBlock Block>
void read_block(const Block& block, std::size_t row, float* out);

}  // namespace minimind
