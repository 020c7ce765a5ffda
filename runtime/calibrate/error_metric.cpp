#include "runtime/calibrate/error_metric.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "weights/base/parallel.h"

namespace minimind {
namespace {

using kernels::panel_rows;

constexpr std::size_t block_columns = 32;  // factored at once

// Sorts the columns [begin, end) in groups of sizes[0], each of which is sorted in groups of sizes[1], and so on.
void sort_groups(const std::vector<float>& moments, std::size_t cols, std::span<const std::size_t> sizes,
                 std::size_t begin, std::size_t end, std::vector<std::size_t>& sorted) {
  if (sizes.empty()) {
    for (std::size_t col = begin; col < end; ++col) sorted.push_back(col);
    return;
  }
  const std::size_t size = sizes.front();
  std::vector<std::pair<double, std::size_t>> groups;  // minus the sum of the diagonal, and the first column
  for (std::size_t first = begin; first < end; first += size) {
    groups.emplace_back(0, first);
    for (std::size_t col = first; col < std::min(end, first + size); ++col) {
      groups.back().first -= static_cast<double>(moments[col * cols + col]);
    }
  }
  // A shorter group stays last, so that groups start at multiples of their size.
  const bool short_last = (end - begin) % size != 0;
  std::sort(groups.begin(), groups.end() - short_last);
  for (const auto& [sum, first] : groups) {
    sort_groups(moments, cols, sizes.subspan(1), first, std::min(end, first + size), sorted);
  }
}

// Blocks of 256 columns exist only if they divide the columns.
std::vector<std::size_t> order_of(const SecondMoments& moments) {
  constexpr std::array<std::size_t, 3> sizes{256, 32, 16};
  const bool divided = moments.cols % sizes[0] == 0;
  std::vector<std::size_t> sorted;
  sort_groups(moments.inputs, moments.cols, std::span(sizes).subspan(divided ? 0 : 1), 0, moments.cols, sorted);
  return sorted;
}

}  // namespace

// Columns [begin, end) from those after them, which are done: row i of them needs rows `begin` to `end` only.
void factor_from_the_end(std::vector<double>& matrix, std::size_t n, std::size_t threads) {
  std::vector<double> scaled(block_columns * n);  // U * pivots of rows [begin, end)
  for (std::size_t end = n; end > 0;) {
    const std::size_t begin = end - std::min(end, block_columns);
    const auto subtract_later = [&](std::size_t row, std::size_t first) {
      for (std::size_t j = std::max(first, row); j < end; ++j) {
        matrix[row * n + j] -= dot(&matrix[row * n + end], &scaled[(j - begin) * n + end], n - end);
      }
    };
    const auto solve_within = [&](std::size_t row) {
      for (std::size_t j = end; j-- > std::max(begin, row + 1);) {
        double value = matrix[row * n + j];
        for (std::size_t k = j + 1; k < end; ++k) value -= matrix[row * n + k] * scaled[(j - begin) * n + k];
        matrix[row * n + j] = value / matrix[j * n + j];
      }
      if (row < begin) return;
      for (std::size_t k = row + 1; k < end; ++k) {
        scaled[(row - begin) * n + k] = matrix[row * n + k] * matrix[k * n + k];
        matrix[row * n + row] -= matrix[row * n + k] * scaled[(row - begin) * n + k];
      }
    };
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t k = end; k < n; ++k) scaled[(row - begin) * n + k] = matrix[row * n + k] * matrix[k * n + k];
    }
    for (std::size_t row = begin; row < end; ++row) subtract_later(row, row);
    for (std::size_t row = end; row-- > begin;) solve_within(row);
    constexpr std::size_t rows_per_task = 16;
    in_parallel((begin + rows_per_task - 1) / rows_per_task, threads, [&](std::size_t task) {
      for (std::size_t row = task * rows_per_task; row < std::min(begin, (task + 1) * rows_per_task); ++row) {
        subtract_later(row, begin);
        solve_within(row);
      }
    });
    end = begin;
  }
}

ErrorMetric::ErrorMetric(const SecondMoments& moments, double damping, std::size_t threads)
    : cols_(moments.cols), columns_(order_of(moments)), pivots_(moments.cols) {
  const std::size_t n = cols_;
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) trace += static_cast<double>(moments.inputs[i * n + i]);
  const bool known = trace > 0;
  if (known) unit_ = trace / static_cast<double>(n);
  std::vector<double> factored(n * n);
  for (std::size_t i = 0; known && i < n; ++i) {
    const float* const row = &moments.inputs[columns_[i] * n];
    for (std::size_t j = 0; j < n; ++j) factored[i * n + j] = static_cast<double>(row[columns_[j]]) / unit_;
  }
  for (std::size_t i = 0; i < n; ++i) factored[i * n + i] += known ? damping : 1;
  std::vector<float> values(factored.begin(), factored.end());
  matrix_ = DenseMatrix(values.data(), n, n);
  factor_from_the_end(factored, n, threads);
  for (std::size_t row = 0; row < n; ++row) {
    pivots_[row] = static_cast<float>(factored[row * n + row]);
    std::fill_n(values.begin() + std::ptrdiff_t(row * n), row + 1, 0.0f);
    for (std::size_t col = row + 1; col < n; ++col) values[row * n + col] = static_cast<float>(factored[row * n + col]);
  }
  transposed_feedback_ = DenseMatrix::transposed(values.data(), n, n);
}

float ErrorMetric::at(std::size_t row, std::size_t col) const {
  const Panels<float> panels = matrix_.part(0, cols_, cols_);
  return panels.data[row / panel_rows * panels.stride + col * panel_rows + row % panel_rows];
}

float ErrorMetric::feedback(std::size_t row, std::size_t col) const {
  const Panels<float> panels = transposed_feedback_.part(0, cols_, cols_);
  return panels.data[col / panel_rows * panels.stride + row * panel_rows + col % panel_rows];
}

}  // namespace minimind
