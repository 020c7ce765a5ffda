#pragma once

#include <cstddef>

#include "runtime/kernels/kernels.h"

namespace minimind {

// Writes a block as it is in a GGUF file to one row of a kernel's block of 16 rows, which has the same integers and
// scales in another order.
void put_block(const std::byte* stored, std::size_t row, kernels::Q8Block& out);
void put_block(const std::byte* stored, std::size_t row, kernels::NibbleBlock& out);
template <kernels::PartBlock Block>
void put_block(const std::byte* stored, std::size_t row, Block& out);

}  // namespace minimind
