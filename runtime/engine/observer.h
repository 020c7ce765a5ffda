#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/engine/matrix.h"

namespace minimind {

// Looks at what forward passes compute.
class Observer {
 public:
  virtual ~Observer() = default;

  // Takes values of a point, which are valid during the call alone. The points of runtime/inside/points.h come in the
  // order of the equations, each without "model." and the prefix of its layer. Values are rows of the batch from `row`
  // on; of an FFN, slots; of the norms, RoPE and scores of attention, one row of `head`.
  virtual void see(std::string_view point, Matrix<const float> values, std::size_t row, std::size_t head) = 0;
};

}  // namespace minimind
