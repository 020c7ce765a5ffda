#include "runtime/inside/trace_difference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "weights/base/cancel.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

double relative_difference(std::span<const float> ours, const float* theirs) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i], b = theirs[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      norm += std::isfinite(b) ? b * b : 0;
      continue;
    }
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  if (difference == 0) return 0;
  const double relative = std::sqrt(difference / norm);
  return std::isfinite(relative) ? relative : INFINITY;
}

PointDifference compare(const StoredTensor& tensor, const Recording& recording, std::size_t index) {
  PointDifference result{index};
  const std::vector<std::size_t> shape = recording.shape(index);
  if (!is_shape_of_point(tensor.shape, shape)) {
    result.relative = INFINITY;
    result.shape = shape_text(tensor.shape);
    return result;
  }
  const std::span<const float> values = recording.values(index);
  if (values.empty()) return result;
  const bool are_scores = recording.points()[index].shown == "self_attn.scores";
  const std::size_t width = values.size() / shape.front();
  std::vector<float> theirs(width);
  for (std::size_t token = 0; token < shape.front(); ++token) {
    check_cancelled();
    read_floats(tensor, token * width, width, theirs.data());
    if (are_scores) {
      for (std::size_t i = 0; i < width; ++i) {
        if (i % shape.back() > token) theirs[i] = 0;
      }
    }
    const double relative = relative_difference(values.subspan(token * width, width), theirs.data());
    if (relative > result.relative) {
      result.relative = relative;
      result.token = token;
    }
  }
  return result;
}

}  // namespace

bool is_shape_of_point(const std::vector<std::size_t>& found, const std::vector<std::size_t>& expected) {
  std::size_t all_found = 1, all_expected = 1;
  for (const std::size_t size : found) all_found *= size;
  for (const std::size_t size : expected) all_expected *= size;
  const auto first = std::find_if(found.begin(), found.end(), [](std::size_t size) { return size != 1; });
  return all_found == all_expected && (first == found.end() || *first == expected.front() || expected.front() == 1);
}

TraceMatch match(const Trace& trace, const Model& model) {
  TraceMatch result;
  std::set<std::string> known;
  for (Point& point : points_of(model)) {
    known.insert(point.name);
    (trace.tensors.contains(point.name) ? result.in_trace : result.missing).push_back(std::move(point));
  }
  for (const auto& [name, own] : trace.own_names) {
    if (!known.contains(name)) result.unknown.push_back(own);
  }
  return result;
}

std::vector<PointDifference> differences(const Trace& trace, const Recording& recording) {
  std::vector<PointDifference> all;
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    all.push_back(compare(trace.tensors.at(recording.points()[i].name), recording, i));
  }
  return all;
}

}  // namespace minimind
