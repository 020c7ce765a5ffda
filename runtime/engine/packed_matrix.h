#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// How weights are held in memory. As stored is lossless.
enum class WeightType { as_stored, f32, f16, bf16, q8_0, q4_0, iq4_nl };

// "f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl". Throws UsageError for anything else.
WeightType parse_weight_type(const std::string& name);

// The encoding that a type other than as_stored stands for.
DType dtype_of(WeightType type);

// A weight matrix laid out for the kernels: panels of 16 rows, in which each column's 16 numbers (or, for the block
// types, each 32 columns' blocks) lie together. Rows that fill up the last panel are zero. 64-byte aligned.
template <class Element>
class PackedMatrix {
 public:
  using element_type = Element;

  // Takes its memory from `memory`; contents are uninitialised. Throws Error when rows x cols overflows, std::bad_alloc
  // when memory is short.
  PackedMatrix(std::size_t rows, std::size_t cols, WeightMemory& memory);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t panels() const { return kernels::panel_count(rows_); }
  std::size_t elements_per_panel() const { return elements_per_panel_; }
  std::size_t byte_size() const { return panels() * elements_per_panel_ * sizeof(Element); }

  const Element* data() const { return data_.get(); }
  Element* panel(std::size_t i) { return data_.get() + i * elements_per_panel_; }
  const Element* panel(std::size_t i) const { return data_.get() + i * elements_per_panel_; }

 private:
  std::size_t rows_;
  std::size_t cols_;
  std::size_t elements_per_panel_;
  std::shared_ptr<Element> data_;
};

using WeightMatrix =
    std::variant<PackedMatrix<float>, PackedMatrix<F16>, PackedMatrix<Bf16>, PackedMatrix<kernels::Q8Block>,
                 PackedMatrix<kernels::Q4Block>, PackedMatrix<kernels::Iq4NlBlock>>;

std::size_t rows(const WeightMatrix& matrix);
std::size_t cols(const WeightMatrix& matrix);

// As laid out, padding included: what a product with the whole of it reads.
std::size_t byte_size(const WeightMatrix& matrix);

// What a stored matrix [rows, cols] that is asked for as `type` should be held as: that type; f16, where a block type
// cannot hold rows of so many columns; and where the numbers are too large for either, or not finite, as stored. As
// stored, block types that the kernels do not know are f32, which is exact. On `threads` threads looks at every number,
// if it must. Throws Error for a matrix of integers.
DType held_type(const StoredTensor& tensor, WeightType type, std::size_t threads);

// Lays out stored matrices for the kernels. They are handed out at once and filled later, all of them together, so that
// one team of threads shares the work of a whole model.
class Packer {
 public:
  // The matrix that finish() will fill from `tensor` [rows, cols], which must live until then, and which `held` can
  // hold: see held_type. Where the two types are the same, every number stays as it is.
  WeightMatrix add(const StoredTensor& tensor, DType held);

  // Fills everything added, on `threads` threads, and lets go of the files' pages.
  void finish(std::size_t threads);

 private:
  template <class Element>
  WeightMatrix add_as(const StoredTensor& tensor);

  WeightMemory memory_;
  std::vector<std::function<void()>> jobs_;
};

// One matrix alone, as held_type says.
WeightMatrix pack(const StoredTensor& tensor, WeightType type, std::size_t threads);

// One row as floats; out is [cols].
void read_row(const WeightMatrix& matrix, std::size_t row, float* out);

// What is multiplied with weights, [T, cols]: as it is, and for block types rounded to 8 bits in blocks of 32.
struct Activations {
  Matrix<const float> exact;
  Matrix<const kernels::ActivationBlock> quantized;  // [T, cols / 32]; empty where no weight needs it

  Activations rows(Range range) const {
    return {exact.row_range(range.begin, range.end),
            quantized.data ? quantized.row_range(range.begin, range.end) : quantized};
  }
};

// Whether products with it take the activations rounded to 8 bits, and not exact.
bool takes_quantized(const WeightMatrix& matrix);

// y[t] = matrix x[t] for every row t of y [T, rows], for the columns of y that lie in the panels [first, last).
void multiply(const kernels::Table& kernels, const WeightMatrix& matrix, Range panels, const Activations& x,
              Matrix<float> y);

}  // namespace minimind
