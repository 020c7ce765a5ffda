#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace minimind {

// A search for the largest of many values, none of them NaN, in one pass that compares several side by side.
class LargeValues {
 public:
  // Returns the indices of the k largest values, k > 0, of all that equal the last of these, and of few others. They
  // are valid until the next call.
  std::span<const std::size_t> find(std::span<const float> values, std::size_t k);

 private:
  void find_column_maxima(std::span<const float> values);

  std::vector<float> maxima_, ordered_;
  std::vector<std::size_t> found_;
};

}  // namespace minimind
