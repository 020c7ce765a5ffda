#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/inside/recording.h"
#include "runtime/inside/trace_file.h"

namespace minimind {

// How far the values of a point are from those of a trace.
struct PointDifference {
  std::size_t point;  // its index in Recording::points()
  // The largest over all tokens of |ours - trace| / |trace|, both as Euclidean norms; infinite if a value is not finite
  // in one of them alone, if the trace has only zeros for a token and the model has not, and for another shape.
  double relative = 0;
  std::size_t token = 0;  // where that is; of an expert, the row
  std::string shape{};    // that of the trace, if it is another
};

// A trace and the points of a model, without their values.
struct TraceMatch {
  std::vector<std::string> unknown;  // tensors of the trace that are no points of the model
  std::vector<Point> in_trace;       // in the order of the equations
  std::vector<Point> missing;        // points of the model that the trace lacks
};

// Whether a tensor's shape is that of a point, except for leading dimensions of 1, as of a batch, and dimensions that
// are joined, as those of heads are in q_proj.
bool is_shape_of_point(const std::vector<std::size_t>& found, const std::vector<std::size_t>& expected);

TraceMatch match(const Trace& trace, const Model& model);

// Compares all points of the recording with the trace, which must have them, unless it is of an expert that no token
// chose. Scores of later positions do not count, because code masks them by various numbers. Throws Cancelled.
std::vector<PointDifference> differences(const Trace& trace, const Recording& recording);

}  // namespace minimind
