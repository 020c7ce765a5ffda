#include "tools/commands/compare_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "runtime/inside/points.h"
#include "runtime/inside/trace_difference.h"
#include "runtime/inside/trace_file.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/language.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/checkpoint/weights_hash.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double clear_growth = 5;

struct TraceResult {
  const Recording& recording;
  const Config& config;
  std::vector<PointDifference> differences;
  std::vector<std::string> missing, unknown;
  std::optional<bool> same_weights;  // nullopt: the trace does not tell
  double tolerance;

  std::string name(std::size_t point) const { return own_name(config, recording.points()[point].name); }

  const PointDifference* first_over() const {
    const auto found = std::find_if(differences.begin(), differences.end(),
                                    [&](const PointDifference& each) { return each.relative > tolerance; });
    return found == differences.end() ? nullptr : &*found;
  }
  // The first point that differs clearly more than all before it. Rounding grows by less from point to point.
  const PointDifference* first_jump() const {
    double most = std::numeric_limits<float>::epsilon();
    for (const PointDifference& each : differences) {
      if (each.relative > clear_growth * most) return &each;
      most = std::max(most, each.relative);
    }
    return nullptr;
  }

  bool passed() const { return !first_over() && unknown.empty(); }
};

std::string model_of(const Trace& trace) {
  return trace.model.empty() ? "" : fmt::format("; it is of {}", quote(trace.model));
}

void require_same_tokens(const Trace& trace, const std::vector<std::int32_t>& given) {
  const auto [ours, theirs] = std::mismatch(given.begin(), given.end(), trace.tokens.begin(), trace.tokens.end());
  if (ours == given.end() && theirs == trace.tokens.end()) return;
  const auto shown = [](auto at, const std::vector<std::int32_t>& ids) {
    return at == ids.end() ? "none" : std::to_string(*at);
  };
  throw Error(fmt::format("{}: is a trace of another text: token {} is {}, expected {}", trace.path,
                          ours - given.begin(), shown(theirs, trace.tokens), shown(ours, given)));
}

// A trace without any point of the model is of something else.
void require_points(const Trace& trace, const Model& model, const TraceMatch& match) {
  if (!match.in_trace.empty()) return;
  const std::string& unknown = match.unknown.front();
  throw Error(fmt::format("{}: has no point of the model, but {}, expected names such as {}", trace.path,
                          quote(unknown),
                          quote(nearest_point(model, unknown).value_or(own_name(model.config, "model.norm")))));
}

// Before the tokens are run: a small file can name any number of them.
void require_shapes(const Trace& trace, const Config& config, const std::vector<Point>& points) {
  for (const Point& point : points) {
    if (point.expert) continue;
    const std::vector<std::size_t>& found = trace.tensors.at(point.name).shape;
    const std::vector<std::size_t> expected = shape_for(point, trace.tokens.size());
    if (is_shape_of_point(found, expected)) continue;
    throw Error(fmt::format("{}: is a trace of another model: {} is {}, expected {}{}", trace.path,
                            own_name(config, point.name), shape_text(found), shape_text(expected), model_of(trace)));
  }
}

// The points between this one and the one before it in the trace, which the trace lacks. Those of experts do not count.
std::vector<Point> lacking_before(const std::string& name, const Trace& trace, const Model& model) {
  std::vector<Point> lacking;
  for (Point& point : points_of(model)) {
    if (point.name == name) break;
    if (point.expert) continue;
    if (trace.tensors.contains(point.name)) {
      lacking.clear();
    } else {
      lacking.push_back(std::move(point));
    }
  }
  return lacking;
}

OrderedJson as_json(const TraceResult& result, const Trace& trace, const Model& model) {
  OrderedJson points = OrderedJson::array();
  for (const PointDifference& each : result.differences) {
    points.push_back(
        {{"name", result.name(each.point)},
         {"difference", std::isfinite(each.relative) ? OrderedJson(each.relative) : OrderedJson("infinite")},
         {"token", each.token}});
  }
  OrderedJson json{
      {"tokens", trace.tokens.size()}, {"points", points}, {"missing", result.missing}, {"unknown", result.unknown}};
  json["same_weights"] = result.same_weights ? OrderedJson(*result.same_weights) : OrderedJson(nullptr);
  json["first_over"] = nullptr;
  if (const PointDifference* const first = result.first_over()) {
    json["first_over"] = result.name(first->point);
    json["formula"] = result.recording.points()[first->point].formula;
    json["lacking_before"] = OrderedJson::array();
    for (const Point& point : lacking_before(result.recording.points()[first->point].name, trace, model)) {
      json["lacking_before"].push_back(own_name(result.config, point.name));
    }
  }
  const PointDifference* const jump = result.first_jump();
  json["first_jump"] = jump ? OrderedJson(result.name(jump->point)) : OrderedJson(nullptr);
  json["tolerance"] = result.tolerance;
  json["passed"] = result.passed();
  return json;
}

constexpr std::size_t most_names = 3;

void print_names(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto shown = std::span(names).first(std::min(names.size(), most_names));
  print_output("{} {}: {}{}\n", names.size(), what, fmt::join(shown, ", "), names.size() > most_names ? ", ..." : "");
}

// An error that is small at first may be over the tolerance only where later layers have made it larger.
void print_jump(const TraceResult& result) {
  const PointDifference* const jump = result.first_jump();
  if (!jump || jump == result.first_over()) return;
  print_output("the difference jumps at {}, to {:.2g}\n    {}\n", result.name(jump->point), jump->relative,
               result.recording.points()[jump->point].formula);
}

void print_first_over(const TraceResult& result, const Trace& trace, const Model& model) {
  const PointDifference& first = *result.first_over();
  const Point& point = result.recording.points()[first.point];
  print_output("first over the tolerance of {:g}: {}, by {:.2g} at token {}\n    {}\n", result.tolerance,
               result.name(first.point), first.relative, first.token, point.formula);
  const std::vector<Point> lacking = lacking_before(point.name, trace, model);
  if (!lacking.empty()) print_output("the cause may also be at a point before it that the trace lacks:\n");
  for (const Point& each : lacking) print_output("    {}: {}\n", own_name(result.config, each.name), each.formula);
  if (!result.same_weights && point.shown == "embed_tokens") {
    print_output("the embeddings differ, so the trace may be of another model{}\n", model_of(trace));
  }
}

void print_result(const TraceResult& result, const Trace& trace, const Model& model) {
  for (const PointDifference& each : result.differences) {
    print_output("{:8.2g}  {}{}\n", each.relative, result.name(each.point),
                 each.shape.empty() ? "" : fmt::format(" is {} in the trace", each.shape));
  }
  print_names("points of the model are not in the trace", result.missing);
  print_names("tensors of the trace are no points of the model", result.unknown);
  for (std::size_t i = 0; i < std::min(result.unknown.size(), most_names); ++i) {
    const auto near = nearest_point(model, result.unknown[i]);
    if (near) print_output("    {}: did you mean {}?\n", result.unknown[i], *near);
  }
  if (result.same_weights == false) print_output("the trace is of other weights{}\n", model_of(trace));
  if (!result.first_over()) {
    print_output("max relative difference {:.2g}, within the tolerance of {:g}\n",
                 std::max_element(result.differences.begin(), result.differences.end(),
                                  [](const auto& a, const auto& b) { return a.relative < b.relative; })
                     ->relative,
                 result.tolerance);
  } else {
    print_first_over(result, trace, model);
  }
  print_jump(result);
}

}  // namespace

bool compare_trace(const std::string& path, const CheckpointOptions& checkpoint, const RunOptions& run,
                   const TokenOptions& tokens, double tolerance, bool json) {
  const Trace trace = read_trace(open_input(path));
  if (tokens.given) require_same_tokens(trace, tokens.read());
  std::optional<bool> same_weights;
  const LLM llm = load_llm(checkpoint, run, [&](const Checkpoint& open, LLM&) {
    if (!trace.sha256.empty()) same_weights = weights_sha256(open.tensors) == trace.sha256;
  });
  const auto beyond = std::find_if(trace.tokens.begin(), trace.tokens.end(), [&](std::int32_t token) {
    return token < 0 || static_cast<std::size_t>(token) >= llm.config.vocab_size;
  });
  if (beyond != trace.tokens.end()) {
    throw Error(fmt::format("{}: is a trace of another model: it has token {}, expected 0 to {}{}", path, *beyond,
                            llm.config.vocab_size - 1, model_of(trace)));
  }
  TraceMatch matched = match(trace, *llm.model);
  require_points(trace, *llm.model, matched);
  require_shapes(trace, llm.config, matched.in_trace);
  Progress progress(std::string(translated("compare")), trace.tokens.size(), ProgressUnit::tokens);
  const Recording recording = record(*llm.model, llm.kernels, llm.kv_type, matched.in_trace, trace.tokens,
                                     [&](std::size_t done) { progress.show(done); });
  TraceResult result{recording,    llm.config, differences(trace, recording), {}, std::move(matched.unknown),
                     same_weights, tolerance};
  for (const Point& point : matched.missing) {
    // PyTorch's hooks may not be called for an expert that no token chose.
    if (!point.expert) result.missing.push_back(own_name(llm.config, point.name));
  }
  if (json) {
    print_output("{}\n", dump_json(as_json(result, trace, *llm.model)));
  } else {
    print_result(result, trace, *llm.model);
  }
  return result.passed();
}

}  // namespace minimind
