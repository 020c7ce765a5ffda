#include "runtime/engine/ops.h"

#include <algorithm>

namespace minimind {

void embed(const Model& model, std::span<const Batch::Row> rows, Matrix<float> x, const Worker& worker) {
  worker.begin(Operation::embed);
  const Range share = worker.share(rows.size());
  for (std::size_t t = share.begin; t < share.end; ++t) {
    read_row(model.embed_tokens, static_cast<std::size_t>(rows[t].token), x.row(t));
  }
}

void rope_table(const Rope& rope, std::span<const Batch::Row> rows, Matrix<float> cos, Matrix<float> sin,
                const Worker& worker) {
  const Range share = worker.share(rows.size());
  for (std::size_t t = share.begin; t < share.end; ++t) rope_angles(rope, rows[t].position, cos.row(t), sin.row(t));
}

Range own_rows(std::size_t rows, const Worker& worker) {
  return rows == 1 ? Range{0, 1} : worker.share(rows);
}

void rms_norm(const kernels::Table& kernels, Matrix<const float> x, const std::vector<float>& weight, double eps,
              Matrix<float> y, const Worker& worker) {
  worker.begin(Operation::rms_norm);
  const Range own = own_rows(x.rows, worker);
  for (std::size_t t = own.begin; t < own.end; ++t) {
    kernels.rms_norm(x.row(t), weight.data(), x.cols, static_cast<float>(eps), y.row(t));
  }
}

void matmul(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> y,
            const Worker& worker) {
  matmul(kernels, weight, worker.share(kernels::panel_count(y.cols)), x, y);
}

Range own_columns(std::size_t rows, const Worker& worker) {
  const Range panels = worker.share(kernels::panel_count(rows));
  return {std::min(panels.begin * kernels::panel_rows, rows), std::min(panels.end * kernels::panel_rows, rows)};
}

void add(const kernels::Table& kernels, Matrix<const float> y, Matrix<float> x, const Worker& worker) {
  const Range columns = own_columns(x.cols, worker);
  for (std::size_t t = 0; t < x.rows; ++t)
    kernels.add(x.row(t) + columns.begin, y.row(t) + columns.begin, columns.size());
}

}  // namespace minimind
