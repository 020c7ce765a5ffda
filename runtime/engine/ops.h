#pragma once

#include <span>
#include <vector>

#include "runtime/engine/batch.h"
#include "runtime/engine/matrix.h"
#include "runtime/engine/model.h"
#include "runtime/engine/thread_team.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The steps that all layers share. Every worker of a team calls each function with the same arguments, and the function
// does that worker's share. Other workers may read the results only after worker.barrier(). T is the number of rows in
// the batch.

// x[t] = embed_tokens[rows[t].token]; x is [T, d].
void embed(const Model& model, std::span<const Batch::Row> rows, Matrix<float> x, const Worker& worker);

// Computes cos and sin, both [T, D / 2], for the rows' positions.
void rope_table(const Rope& rope, std::span<const Batch::Row> rows, Matrix<float> cos, Matrix<float> sin,
                const Worker& worker);

// Returns the rows that a worker computes of those that every worker reads next: its share, or a single row, which
// every worker computes for itself in separate memory.
Range own_rows(std::size_t rows, const Worker& worker);

// The worker's rows: y[t] = x[t] / sqrt(mean(x[t]²) + eps) * weight.
void rms_norm(const kernels::Table& kernels, Matrix<const float> x, const std::vector<float>& weight, double eps,
              Matrix<float> y, const Worker& worker);

// y[t] = weight x[t], split by rows of the weight.
void matmul(const kernels::Table& kernels, const WeightMatrix& weight, const Activations& x, Matrix<float> y,
            const Worker& worker);

// Returns the columns of y that matmul assigns to this worker, for a weight of `rows` rows.
Range own_columns(std::size_t rows, const Worker& worker);

// The worker's columns: x += y, row by row.
void add(const kernels::Table& kernels, Matrix<const float> y, Matrix<float> x, const Worker& worker);

}  // namespace minimind
