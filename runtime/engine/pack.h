#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/packed_matrix.h"
#include "weights/tensor/stored_tensor.h"

namespace minimind {

// The type of weights in memory: see is_weight_type(). std::nullopt: as stored, which is lossless.
using WeightType = std::optional<DType>;

// The arithmetic of products with weights. f32 takes activations as they are, but block types and q8_r round them to 8
// bits. bf16 rounds the activations and all matrices to bf16, and adds in f32; it requires kernels::with_bf16().
enum class Compute { f32, bf16 };

// Returns the type to keep a stored matrix [rows, cols] as if `type` is requested: that type, or what
// type_or_fallback (encode_values.h) returns if its blocks do not divide the columns; the stored type if values are too
// large for these types or not finite. Of q8_r, a row with a value that is not finite becomes NaN. Instead of a stored
// block type that the kernels do not have it returns f32, which is exact. Reads every value, on `threads` threads, if
// that is necessary. Throws Error for a matrix of integers.
DType packed_type(const StoredTensor& tensor, WeightType type, std::size_t threads);

// Lays out stored matrices for the kernels. add() returns a matrix at once and finish() fills all of them together, so
// that one team of threads shares the work of a whole model.
class Packer {
 public:
  // The matrices are in `memory`, which must live as long as the packer.
  explicit Packer(HugePageArena& memory) : memory_(memory) {}

  // Returns the matrix that finish() will fill from `tensor` [rows, cols], which must live until then. `packed` must be
  // able to represent its values, see packed_type. If `packed` is the stored type, every value stays bit for bit the
  // same. With Compute::bf16, `packed` must be f16 or bf16, and the matrix is bf16 in any case.
  WeightMatrix add(const StoredTensor& tensor, DType packed, Compute compute = Compute::f32);

  // Fills all matrices added, on `threads` threads. Throws Error if a tensor cannot be read.
  void finish(std::size_t threads);

 private:
  HugePageArena& memory_;
  std::vector<std::function<void(std::vector<std::byte>& buffer)>> jobs_;
};

}  // namespace minimind
