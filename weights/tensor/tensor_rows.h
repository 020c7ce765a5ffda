#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns a copy of columns [first, last) of a matrix. For a block type, both bounds must be multiples of the block
// size.
StoredTensor slice_columns(const StoredTensor& matrix, std::size_t first, std::size_t last);

// Returns a copy of a matrix whose row i is row order[i] of `matrix`.
StoredTensor reorder_rows(const StoredTensor& matrix, std::span<const std::size_t> order);

// The two layouts of RoPE (config.h) are one model under two orders of the rows of q_proj and k_proj. Within each head,
// row i and row i + head_dim / 2 of the halves are rows 2i and 2i + 1 of the adjacent pairs. These functions return the
// order that converts one layout into the other, for reorder_rows.
std::vector<std::size_t> halves_to_adjacent_pairs(std::size_t rows, std::size_t head_dim);
std::vector<std::size_t> adjacent_pairs_to_halves(std::size_t rows, std::size_t head_dim);

}  // namespace minimind
