#include "runtime/generate/large_values.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace minimind {

// A chunk of values has rows of as many as are compared side by side.
static constexpr std::size_t lanes = 16, chunk_rows = 16, chunk_size = lanes * chunk_rows;

// Sets `maxima_` to the largest value of each column of each chunk. Values after the last whole chunk are in none.
void LargeValues::find_column_maxima(std::span<const float> values) {
  maxima_.clear();
  for (std::size_t i = 0; i + chunk_size <= values.size(); i += chunk_size) {
    std::array<float, lanes> largest;
    std::copy_n(&values[i], lanes, largest.begin());
    for (std::size_t row = 1; row < chunk_rows; ++row) {
      const float* const of_row = &values[i + row * lanes];
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        largest[lane] = of_row[lane] > largest[lane] ? of_row[lane] : largest[lane];
      }
    }
    maxima_.insert(maxima_.end(), largest.begin(), largest.end());
  }
}

// All that reach the k-th largest of the columns' maxima, which is no larger than the k-th largest value, and which few
// columns reach.
std::span<const std::size_t> LargeValues::find(std::span<const float> values, std::size_t k) {
  find_column_maxima(values);
  float least = -std::numeric_limits<float>::infinity();
  if (maxima_.size() >= k) {
    ordered_ = maxima_;
    const auto last = ordered_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ordered_.begin(), last, ordered_.end(), std::greater<>());
    least = *last;
  }
  found_.clear();
  const auto keep_if_large = [&](std::size_t i) {
    if (values[i] >= least) found_.push_back(i);
  };
  for (std::size_t column = 0; column < maxima_.size(); ++column) {
    if (maxima_[column] < least) continue;
    const std::size_t first = column / lanes * chunk_size + column % lanes;
    for (std::size_t row = 0; row < chunk_rows; ++row) keep_if_large(first + row * lanes);
  }
  for (std::size_t i = values.size() / chunk_size * chunk_size; i < values.size(); ++i) keep_if_large(i);
  return found_;
}

}  // namespace minimind
