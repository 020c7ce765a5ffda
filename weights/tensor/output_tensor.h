#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A tensor as it is to be written: the rows of one or several stored tensors, in another order or encoding if need be.
// A row is the values along the last dimension; a vector is one row. The sources must outlive it.
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

// The bytes it takes in a file. Throws Error if its rows are not whole blocks.
std::size_t byte_count(const OutputTensor& tensor);

// The type of most of their bytes. There is at least one tensor.
DType most_common_type(const std::vector<OutputTensor>& tensors);

// Whether `dtype`, a float type or a block type that quantize can write, can hold every value of `source`, rounded: a
// block type requires rows that are whole blocks and finite values whose scales fit a binary16, and for a float type no
// finite value may become infinite. Looks at every value, those of block types on `threads` threads, if it must.
bool can_encode(const StoredTensor& source, DType dtype, std::size_t threads);

// The type for a matrix of `cols` columns that is requested as `wanted`: that type if it fits; f16 if the rows are not
// whole blocks of `wanted` and f16 fits; else `lossless`.
DType type_or_fallback(DType wanted, DType lossless, std::size_t cols, const std::function<bool(DType)>& fits);

// Writes `count` values as `dtype`, which can hold them: see can_encode.
void encode_values(DType dtype, const float* values, std::size_t count, std::byte* out);

// Encodes the tensor, block types on `threads` threads, and calls use(bytes) with it, piece by piece in order. Rows
// that are stored in the requested type are copied bit for bit; others are rounded from binary32. Mapped pages that
// were read are given back. Throws Error, naming the tensor, if its sources do not make up its shape.
void encode(const OutputTensor& tensor, std::size_t threads,
            const std::function<void(std::span<const std::byte>)>& use);

// What was requested: how matrices are encoded, and, if different, the token embedding and the output
// matrix. Without a type they stay as they are stored.
struct WantedTypes {
  std::optional<DType> matrices;
  std::optional<DType> embedding;
};

// Decides how each matrix of a file to be written is encoded, and records what differs from the request.
class TypeChooser {
 public:
  // `block_types` is whether the file format has them.
  TypeChooser(bool block_types, std::size_t threads) : block_types_(block_types), threads_(threads) {}

  // Sets tensor.dtype of a matrix whose sources are set. If the requested type cannot hold it, see
  // type_or_fallback: the lossless type is what is stored, or f32.
  void choose(OutputTensor& tensor, std::optional<DType> wanted);

  // "blk.0.attn_q.weight as f16: its 80 columns are not a multiple of 32"
  const std::vector<std::string>& exceptions() const { return exceptions_; }

 private:
  bool fits(const OutputTensor& tensor, DType type) const;
  DType stored_type(const OutputTensor& tensor) const;

  bool block_types_;
  std::size_t threads_;
  std::vector<std::string> exceptions_;
};

// Whether every value of `tensor` is the same in `type`, bit for bit.
bool holds_exactly(const StoredTensor& tensor, DType type);

}  // namespace minimind
