#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A tensor as it is to be written: the rows of one or several stored tensors, in another order or encoding if need be.
// A row is what lies along the last dimension; a vector is one row. The sources must outlive it.
struct OutputTensor {
  // How several sources make up one tensor: below each other, as stacked experts do, or side by side.
  enum class Join { rows, columns };

  std::string name = {};
  DType dtype = DType::f32;
  std::vector<std::size_t> shape = {};  // outermost first
  std::vector<const StoredTensor*> sources = {};
  Join join = Join::rows;
  std::vector<std::size_t> row_order = {};  // row i is row row_order[i] of the joined sources; empty: as they come
};

// The bytes it takes in a file. Throws Error when its rows are no whole number of blocks.
std::size_t byte_count(const OutputTensor& tensor);

// The type of most of their bytes. There is at least one tensor.
DType most_common_type(const std::vector<OutputTensor>& tensors);

// Whether `dtype`, a float type or a block type that quantize can write, can hold every number of `source`, rounded: a
// block type wants rows that are whole blocks and finite numbers whose scales fit a binary16, and for a float type no
// finite number may become infinite. Looks at every number, those of block types on `threads` threads, where it must.
bool can_encode(const StoredTensor& source, DType dtype, std::size_t threads);

// Encodes the tensor, block types on `threads` threads, and calls use(bytes) with it, piece by piece in order. Rows
// that are stored in the type wanted are copied bit for bit; others are rounded from binary32. Mapped pages that were
// read are given back. Throws Error, naming the tensor, when its sources do not make up its shape.
void encode(const OutputTensor& tensor, std::size_t threads,
            const std::function<void(std::span<const std::byte>)>& use);

}  // namespace minimind
