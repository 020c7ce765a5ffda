#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/fact.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/encode_values.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// A tensor to write: the rows of one or several stored tensors, possibly in another order or encoding. A row is the
// values along the last dimension; a vector is one row. The sources must outlive the tensor.
struct OutputTensor {
  // How several sources are joined: one after the other, as stacked experts are, or side by side.
  enum class Join { rows, columns };

  std::string name = {};
  DType dtype = DType::f32;
  std::vector<std::size_t> shape = {};  // outermost first
  std::vector<const StoredTensor*> sources = {};
  Join join = Join::rows;
  std::vector<std::size_t> row_order = {};  // row i is row row_order[i] of the joined sources; empty: unchanged
  bool type_chosen = false;                 // by TypeChooser; a vector's or a router's type is that of the format
};

// Returns the bytes of the tensor, or of all, in a file. Throws Error if the rows of one are not whole blocks.
std::size_t byte_count(const OutputTensor& tensor);
std::size_t byte_count(const std::vector<OutputTensor>& tensors);

// Throws Error, naming the tensor and the file format, unless the type is f32, f16 or bf16.
void require_float_type(const OutputTensor& tensor, std::string_view format);

// Returns the type with the most bytes among the tensors, of which there must be at least one.
DType most_common_type(const std::vector<OutputTensor>& tensors);

// Encodes the tensor, block types on `threads` threads, and calls use(bytes) with successive pieces. Copies rows that
// are stored in the requested type bit for bit; rounds others from binary32.
// Throws Error, naming the tensor, if its sources do not match its shape.
void encode(const OutputTensor& tensor, std::size_t threads,
            const std::function<void(std::span<const std::byte>)>& use);

// The requested types of matrices and, if different, of the token embedding and the output matrix, and of matrices by
// their names in the file. std::nullopt keeps the stored types.
struct WantedTypes {
  std::optional<DType> matrices;
  std::optional<DType> embedding;
  std::map<std::string, DType> by_name = {};  // has precedence
};

// Chooses the encoding of each matrix of a file to write, and records deviations from the request.
class TypeChooser {
 public:
  // `block_types`: the file format has block types.
  TypeChooser(bool block_types, std::size_t threads) : block_types_(block_types), threads_(threads) {}

  // Sets tensor.dtype of a matrix whose sources are set. If the requested type cannot represent it, see
  // type_or_fallback; the lossless type is the stored one, or f32.
  void choose(OutputTensor& tensor, std::optional<DType> wanted);

  // Entries such as "blk.0.attn_q.weight as f16: its 80 columns are not a multiple of 32".
  const std::vector<Fact>& exceptions() const { return exceptions_; }

 private:
  bool fits(const OutputTensor& tensor, DType type) const;
  DType stored_type(const OutputTensor& tensor) const;

  bool block_types_;
  std::size_t threads_;
  std::vector<Fact> exceptions_;
};

// Returns true if every value of `tensor` is unchanged in `type`, bit for bit.
bool holds_exactly(const StoredTensor& tensor, DType type);

}  // namespace minimind
