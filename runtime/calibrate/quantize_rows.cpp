#include "runtime/calibrate/quantize_rows.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "runtime/calibrate/part_search.h"
#include "weights/base/parallel.h"
#include "weights/tensor/block_codes.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

constexpr std::size_t strip_rows = 64;  // quantised together: a multiple of lanes

float f16_rounded(float value) {
  return to_f32(to_f16(value));
}

// What a type's blocks are made of.
struct BlockType {
  explicit BlockType(DType dtype)
      : type(dtype),
        shape(block_shape(dtype)),
        ranges(code_ranges(dtype)),
        part(std::min(ranges.part, most_part_values)),
        parts(shape.elements / part),
        integer_scales(ranges.scales.lowest != ranges.scales.highest),
        has_minimum(ranges.minima.highest > 0) {}

  DType type;
  BlockShape shape;
  CodeRanges ranges;
  std::size_t part, parts;
  bool integer_scales;  // parts have integers times the block's scale (and minimum); else a part is a block
  bool has_minimum;
};

// The metric within each part, with all others fixed.
struct PartMetric {
  std::vector<float> inverse;  // of H, [length, length]
  std::array<std::array<float, most_part_values>, most_part_values> feedback{};
  std::array<float, most_part_values> pivots{};
};

PartMetric part_metric(const ErrorMetric& metric, std::size_t first, std::size_t n) {
  PartMetric result;
  std::vector<double> factor(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) factor[i * n + j] = static_cast<double>(metric.at(first + i, first + j));
  }
  factor_from_the_end(factor, n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    result.pivots[i] = static_cast<float>(factor[i * n + i]);
    for (std::size_t j = i + 1; j < n; ++j) result.feedback[i][j] = static_cast<float>(factor[i * n + j]);
  }
  // Solves (U + I) diag(pivots) (U + I)ᵀ x = unit vector, for each.
  result.inverse.resize(n * n);
  for (std::size_t unit = 0; unit < n; ++unit) {
    std::vector<double> x(n);
    x[unit] = 1;
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) x[i] -= factor[i * n + j] * x[j];
    }
    for (std::size_t i = 0; i < n; ++i) x[i] /= factor[i * n + i];
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < j; ++i) x[j] -= factor[i * n + j] * x[i];
    }
    for (std::size_t i = 0; i < n; ++i) result.inverse[i * n + unit] = static_cast<float>(x[i]);
  }
  return result;
}

// Up to strip_rows rows on one thread. Columns, and the parts of a block, are in the order of the metric.
class Strip {
 public:
  Strip(const BlockType& type, Matrix<const float> rows, const ErrorMetric& metric,
        const std::vector<PartMetric>& part_metrics, const kernels::Table& kernels)
      : type_(type),
        rows_(rows),
        metric_(metric),
        part_metrics_(part_metrics),
        kernels_(kernels),
        errors_(rows.rows * rows.cols),
        blocks_(rows.rows * (rows.cols / type.shape.elements)),
        products_(strip_rows * type.shape.elements) {}

  void round_in_order() {
    for (std::size_t first = 0; first < rows_.cols; first += type_.part) {
      const std::size_t in_block = first % type_.shape.elements;
      if (type_.integer_scales && in_block == 0) choose_block_scales(first);
      add_feedback(first, type_.part);
      for_each_group([&](std::size_t row) {
        const PartProblem problem = problem_in_order(row, first, 0);
        PartChoice best = cheapest(problem, likely(problem));
        if (type_.integer_scales) best = cheapest(problem, integer_neighbours(best.scales, row, first, 1));
        store(best, row, first);
      });
    }
  }

  void improve_each_part() {
    for (std::size_t first = 0; first < rows_.cols; first += type_.part) {
      const Panels<float> panels = metric_.matrix().part(first, type_.part, rows_.cols);
      multiply(panels, rows_.cols, type_.part);
      for_each_group([&](std::size_t row) { improve(row, first); });
    }
  }

  void finish(std::byte* out, float* errors) {
    const std::size_t blocks = rows_.cols / type_.shape.elements;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::size_t first = i % blocks * type_.shape.elements;
      const std::size_t at = i / blocks * blocks + metric_.columns()[first] / type_.shape.elements;
      pack_block(type_.type, in_stored_order(blocks_[i], first), out + at * type_.shape.bytes);
    }
    std::vector<float> weighed(errors_.size());
    metric_.matrix().multiply(kernels_, error_matrix(), {weighed.data(), rows_.rows, rows_.cols});
    for (std::size_t row = 0; row < rows_.rows; ++row) {
      double sum = 0;
      for (std::size_t col = 0; col < rows_.cols; ++col) {
        sum +=
            static_cast<double>(errors_[row * rows_.cols + col]) * static_cast<double>(weighed[row * rows_.cols + col]);
      }
      errors[row] = static_cast<float>(sum);
    }
  }

 private:
  // The block whose columns are those from `first` on.
  BlockCodes in_stored_order(const BlockCodes& codes, std::size_t first) const {
    BlockCodes result = codes;
    const auto stored = [&](std::size_t k) { return metric_.columns()[first + k] % type_.shape.elements; };
    for (std::size_t k = 0; k < type_.shape.elements; ++k) result.codes[stored(k)] = codes.codes[k];
    for (std::size_t part = 0; part < type_.parts; ++part) {
      const std::size_t to = stored(part * type_.part) / type_.part;
      result.part_scales[to] = codes.part_scales[part];
      result.part_minima[to] = codes.part_minima[part];
    }
    return result;
  }

  Matrix<const float> error_matrix() const { return {errors_.data(), rows_.rows, rows_.cols}; }

  // products_ [rows, count] = these panels times the first `cols` columns of the errors.
  void multiply(const Panels<float>& panels, std::size_t cols, std::size_t count) {
    const Matrix<float> products{products_.data(), rows_.rows, count};
    if (cols == 0) return static_cast<void>(std::fill_n(products_.begin(), rows_.rows * count, 0.0f));
    matmul(kernels_, panels, panels.all(), error_matrix(), products);
  }

  // products_ = what the errors before column `first` add to columns [first, first + count).
  void add_feedback(std::size_t first, std::size_t count) {
    multiply(metric_.transposed_feedback().part(first, count, first), first, count);
    product_cols_ = count;
  }

  template <class Use>
  void for_each_group(const Use& use) {
    for (std::size_t row = 0; row < rows_.rows; row += lanes) use(row);
  }

  std::size_t group_size(std::size_t row) const { return std::min(lanes, rows_.rows - row); }

  BlockCodes& block(std::size_t row, std::size_t column) {
    return blocks_[row * (rows_.cols / type_.shape.elements) + column / type_.shape.elements];
  }
  std::size_t part_of(std::size_t column) const { return column % type_.shape.elements / type_.part; }

  // The problem of the part at `first`, for which products_ starts `skipped` columns earlier.
  PartProblem problem_in_order(std::size_t row, std::size_t first, std::size_t skipped) const {
    PartProblem problem{.length = type_.part, .weight = {}, .base = {}, .feedback = {}, .pivots = {}};
    for (std::size_t k = 0; k < type_.part; ++k) {
      problem.pivots[k] = metric_.pivots()[first + k];
      for (std::size_t j = k + 1; j < type_.part; ++j) problem.feedback[k][j] = metric_.feedback(first + k, first + j);
      for (std::size_t i = 0; i < group_size(row); ++i) {
        const float weight = rows_.row(row + i)[first + k];
        problem.weight[k][i] = weight;
        problem.base[k][i] = weight + products_[(row + i) * product_cols_ + skipped + k];
      }
    }
    return problem;
  }

  std::vector<PartScales> likely(const PartProblem& problem) const {
    std::vector<PartScales> all = likely_scales(type_.ranges, type_.has_minimum, type_.integer_scales, problem);
    if (type_.integer_scales) return all;
    for (PartScales& scales : all) {
      for (std::size_t i = 0; i < lanes; ++i) {
        scales.scale[i] = f16_rounded(scales.scale[i]);
        scales.minimum[i] = f16_rounded(scales.minimum[i]);
      }
    }
    return all;
  }

  PartChoice cheapest(const PartProblem& problem, const std::vector<PartScales>& candidates) const {
    PartChoice best{}, tried{};
    best.cost.fill(INFINITY);
    for (const PartScales& scales : candidates) {
      tried.scales = scales;
      choose_part_codes(type_.ranges, problem, tried);
      keep_cheaper(best, tried, problem.length);
    }
    return best;
  }

  // The block's scale and minimum, so that its parts can have about their best ones.
  void choose_block_scales(std::size_t first) {
    add_feedback(first, type_.shape.elements);
    for_each_group([&](std::size_t row) {
      Lanes scale{}, minimum{};
      for (std::size_t part = 0; part < type_.parts; ++part) {
        const PartProblem problem = problem_in_order(row, first + part * type_.part, part * type_.part);
        const PartScales best = cheapest(problem, likely(problem)).scales;
        for (std::size_t i = 0; i < lanes; ++i) {
          if (std::fabs(best.scale[i]) > std::fabs(scale[i])) scale[i] = best.scale[i];
          minimum[i] = std::max(minimum[i], best.minimum[i]);
        }
      }
      const IntegerRange scales = type_.ranges.scales, minima = type_.ranges.minima;
      const int largest = -scales.lowest > scales.highest ? scales.lowest : scales.highest;
      for (std::size_t i = 0; i < group_size(row); ++i) {
        block(row + i, first).scale = to_f16(scale[i] / static_cast<float>(largest));
        block(row + i, first).minimum =
            type_.has_minimum ? to_f16(minimum[i] / static_cast<float>(minima.highest)) : F16{};
      }
    });
  }

  // The scales that the parts' integers next to these scales give.
  std::vector<PartScales> integer_neighbours(const PartScales& around, std::size_t row, std::size_t first, int reach) {
    const IntegerRange scales = type_.ranges.scales, minima = type_.ranges.minima;
    const int minimum_reach = type_.has_minimum ? 1 : 0;
    std::vector<PartScales> all;
    for (int up = -reach; up <= reach; ++up) {
      for (int minimum_up = -minimum_reach; minimum_up <= minimum_reach; ++minimum_up) {
        PartScales tried{};
        for (std::size_t i = 0; i < group_size(row); ++i) {
          const BlockCodes& of_row = block(row + i, first);
          tried.scale[i] = stepped(around.scale[i], to_f32(of_row.scale), up, scales);
          tried.minimum[i] = stepped(around.minimum[i], to_f32(of_row.minimum), minimum_up, minima);
        }
        all.push_back(tried);
      }
    }
    return all;
  }

  // `unit` times the integer nearest to value / unit, plus `up`.
  static float stepped(float value, float unit, int up, IntegerRange range) {
    if (unit == 0) return 0;
    const int integer = static_cast<int>(std::lrint(value / unit)) + up;
    return unit * static_cast<float>(std::clamp(integer, range.lowest, range.highest));
  }

  PartScales scales_of(std::size_t row, std::size_t first) {
    PartScales scales{};
    const std::size_t part = part_of(first);
    for (std::size_t i = 0; i < group_size(row); ++i) {
      const BlockCodes& codes = block(row + i, first);
      scales.scale[i] = to_f32(codes.scale) * static_cast<float>(codes.part_scales[part]);
      scales.minimum[i] = to_f32(codes.minimum) * static_cast<float>(codes.part_minima[part]);
    }
    return scales;
  }

  void store(const PartChoice& choice, std::size_t row, std::size_t first) {
    const std::size_t part = part_of(first), in_block = first % type_.shape.elements;
    for (std::size_t i = 0; i < group_size(row); ++i) {
      BlockCodes& codes = block(row + i, first);
      const float scale = choice.scales.scale[i], minimum = choice.scales.minimum[i];
      if (type_.integer_scales) {
        const float unit = to_f32(codes.scale), minimum_unit = to_f32(codes.minimum);
        codes.part_scales[part] = static_cast<std::int8_t>(unit == 0 ? 0 : std::lrint(scale / unit));
        codes.part_minima[part] = static_cast<std::uint8_t>(minimum_unit == 0 ? 0 : std::lrint(minimum / minimum_unit));
      } else {
        codes.scale = to_f16(scale);
        codes.minimum = to_f16(minimum);
        codes.part_scales[0] = 1;
        codes.part_minima[0] = static_cast<std::uint8_t>(type_.ranges.minima.lowest);
      }
      for (std::size_t k = 0; k < type_.part; ++k) {
        codes.codes[in_block + k] = static_cast<std::int8_t>(choice.codes[k][i]);
        errors_[(row + i) * rows_.cols + first + k] =
            rows_.row(row + i)[first + k] - (scale * choice.codes[k][i] - minimum);
      }
    }
  }

  // products_ is what H times the errors is in this part: half the slope of the cost. Its best values, without
  // rounding, are the present ones plus the inverse of the part's H times that.
  void improve(std::size_t row, std::size_t first) {
    const PartMetric& metric = part_metrics_[first / type_.part];
    const std::size_t in_block = first % type_.shape.elements, n = type_.part;
    PartProblem problem{.length = n, .weight = {}, .base = {}, .feedback = metric.feedback, .pivots = metric.pivots};
    PartChoice present{.scales = scales_of(row, first), .codes = {}, .cost = {}};
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < group_size(row); ++i) {
        const float* const slope = &products_[(row + i) * n];
        const float code = static_cast<float>(block(row + i, first).codes[in_block + k]);
        float best = present.scales.scale[i] * code - present.scales.minimum[i];
        for (std::size_t j = 0; j < n; ++j) best += metric.inverse[k * n + j] * slope[j];
        problem.weight[k][i] = problem.base[k][i] = best;
        present.codes[k][i] = code;
      }
    }
    compute_cost(problem, present);
    std::vector<PartScales> candidates;
    if (type_.integer_scales) {
      candidates = integer_neighbours(present.scales, row, first, 2);
    } else {
      candidates = likely(problem);
      candidates.push_back(present.scales);
    }
    keep_cheaper(present, cheapest(problem, candidates), n);
    store(present, row, first);
  }

  const BlockType& type_;
  Matrix<const float> rows_;
  const ErrorMetric& metric_;
  const std::vector<PartMetric>& part_metrics_;
  const kernels::Table& kernels_;
  std::vector<float> errors_;  // [rows, cols]: weight - value; 0 in columns that are not rounded yet
  std::vector<BlockCodes> blocks_;
  std::vector<float> products_;
  std::size_t product_cols_ = 0;
};

}  // namespace

QuantizedRows quantize_rows(DType dtype, Matrix<const float> rows, const ErrorMetric& metric, int rounds,
                            const kernels::Table& kernels, std::size_t threads) {
  const BlockType type(dtype);
  assert(rows.cols == metric.cols() && rows.cols % type.shape.elements == 0);
  std::vector<PartMetric> part_metrics(rounds > 0 ? rows.cols / type.part : 0);
  in_parallel(part_metrics.size(), threads,
              [&](std::size_t i) { part_metrics[i] = part_metric(metric, i * type.part, type.part); });
  const std::size_t row_bytes = rows.cols / type.shape.elements * type.shape.bytes;
  QuantizedRows result{std::vector<std::byte>(rows.rows * row_bytes), std::vector<float>(rows.rows)};
  in_parallel((rows.rows + strip_rows - 1) / strip_rows, threads, [&](std::size_t i) {
    const Range range{i * strip_rows, std::min(rows.rows, (i + 1) * strip_rows)};
    std::vector<float> ordered;
    for (std::size_t row = range.begin; row < range.end; ++row) {
      for (const std::size_t col : metric.columns()) ordered.push_back(rows.row(row)[col]);
    }
    Strip strip(type, {ordered.data(), range.end - range.begin, rows.cols}, metric, part_metrics, kernels);
    strip.round_in_order();
    for (int round = 0; round < rounds; ++round) strip.improve_each_part();
    strip.finish(result.blocks.data() + range.begin * row_bytes, result.errors.data() + range.begin);
  });
  return result;
}

}  // namespace minimind
