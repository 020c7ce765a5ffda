#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/inside/trace_difference.h"
#include "runtime/inside/trace_file.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden_model.h"
#include "tests/support/linear_time.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::string trace_path(const std::string& name) {
  return std::string(MINIMIND_SOURCE_DIR) + "/tests/golden_traces/" + name + ".safetensors";
}

struct Compared {
  std::vector<Point> points;
  std::vector<PointDifference> differences;
  TraceMatch matched;

  std::string first_over(double tolerance) const {
    for (const PointDifference& each : differences) {
      if (each.relative > tolerance) return points[each.point].name;
    }
    return "none";
  }
};

Compared compare(const std::string& trace_name, const std::string& case_name) {
  const Model model = load_golden_model(load_golden(case_name));
  const Trace trace = read_trace(InputFile::open(trace_path(trace_name)));
  TraceMatch matched = match(trace, model);
  const Recording recording =
      record(model, kernels::choose(), KvType::f32, matched.in_trace, trace.tokens, [](std::size_t) {});
  return {recording.points(), differences(trace, recording), matched};
}

class GoldenTrace : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTrace, OfPyTorchIsWithin1e_5AtEveryPoint) {
  const Compared compared = compare(GetParam(), GetParam());
  EXPECT_EQ(compared.first_over(1e-5), "none");
  EXPECT_EQ(compared.matched.unknown, std::vector<std::string>());
  for (const Point& missing : compared.matched.missing) EXPECT_TRUE(missing.expert) << missing.name;
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTrace,
                         testing::Values("v1-moe", "v2-early-dense", "v2-moe", "v3-dense", "v3-moe",
                                         "v3-plain-gelu-bias"),
                         test_name);

TEST(Trace, OfAChangedReferenceDiffersFirstAtTheChange) {
  for (const auto& [change, point] :
       {std::pair("eps", "model.layers.0.input_layernorm"), std::pair("rope-layout", "model.layers.0.self_attn.q_rope"),
        std::pair("q-norm", "model.layers.0.self_attn.q_norm"),
        std::pair("transposed", "model.layers.0.self_attn.o_proj"),
        std::pair("activation", "model.layers.0.mlp.down_proj.input")}) {
    EXPECT_EQ(compare(std::string("changed-") + change, "v3-dense").first_over(1e-4), point) << change;
  }
  EXPECT_EQ(compare("changed-experts-order", "v3-moe").first_over(1e-4), "model.layers.0.mlp.experts.1.gate_proj");
}

TEST(Trace, IsReadAsItWasWritten) {
  for (const char* name : {"v1-moe", "v3-moe"}) {
    const GoldenCase golden = load_golden(name);
    const Model model = load_golden_model(golden);
    const Recording recording =
        record(model, kernels::choose(), KvType::f32, points_of(model), golden.tokens, [](std::size_t) {});
    const TemporaryFile path;
    OutputFile file(path.path());
    write_trace(file, recording, model.config, "a.pth", "abc", golden.tokens);
    file.commit();
    const Trace trace = read_trace(path.open());
    EXPECT_EQ(trace.tokens, golden.tokens);
    EXPECT_EQ(trace.model, "a.pth");
    EXPECT_EQ(trace.sha256, "abc");
    EXPECT_EQ(trace.own_names.at("lm_head"), own_name(model.config, "lm_head"));
    for (std::size_t i = 0; i < recording.points().size(); ++i) {
      if (recording.values(i).empty()) continue;
      EXPECT_EQ(trace.tensors.at(recording.points()[i].name).shape, recording.shape(i));
    }
    const TraceMatch matched = match(trace, model);
    const Recording again =
        record(model, kernels::choose(), KvType::f32, matched.in_trace, golden.tokens, [](std::size_t) {});
    for (const PointDifference& each : differences(trace, again)) EXPECT_EQ(each.relative, 0);
  }
}

TEST(Trace, IsWrittenInLinearTime) {
  const GoldenCase golden = load_golden("v3-dense");
  const Model model = load_golden_model(golden);
  const Construct points{"points", [](std::size_t bytes) { return std::string(bytes, 'x'); }};
  const auto write = [&](const std::string& text) {
    std::vector<Point> many;
    for (std::size_t i = 0; i < text.size(); ++i) {
      Point& point = many.emplace_back();
      point.name = fmt::format("model.layers.{:06}.mlp.gate_proj", i);
      point.axes = {{"tokens", 0}};
    }
    const Recording recording(model, kernels::choose(), std::move(many), 1);
    const TemporaryFile path;
    OutputFile file(path.path());
    write_trace(file, recording, model.config, "a.pth", "abc", {1});
  };
  expect_linear("write_trace", {points}, write, 16'000);
}

std::string complaint(const std::string& path) {
  try {
    read_trace(InputFile::open(path));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// Random bytes of the header, names and metadata included: a changed trace is compared, or rejected with an Error.
TEST(Trace, ThatIsCorruptIsRejectedOrCompared) {
  const Model model = load_golden_model(load_golden("v3-dense"));
  const std::string whole = read_whole_file(trace_path("changed-eps"));
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, whole.data(), sizeof header_size);
  std::mt19937 random(7);
  std::size_t compared = 0, rejected = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    std::string changed = whole;
    changed[sizeof header_size + random() % header_size] = "0\"9,[.aZ"[random() % 8];
    const TemporaryFile file(changed);
    try {
      const Trace trace = read_trace(file.open());
      const TraceMatch matched = match(trace, model);
      const Recording recording =
          record(model, kernels::choose(), KvType::f32, matched.in_trace, trace.tokens, [](std::size_t) {});
      compared += differences(trace, recording).size() == matched.in_trace.size();
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_EQ(compared + rejected, 300);
  EXPECT_GT(compared, 10);
  EXPECT_GT(rejected, 10);
}

TEST(Trace, ThatIsNoneSaysSo) {
  EXPECT_NE(complaint(load_golden("v3-dense").model_path).find("is not a .safetensors file, expected a trace"),
            std::string::npos);
  EXPECT_NE(complaint(load_golden("hf-llama").folder + "/model.safetensors").find("its metadata has no tokens"),
            std::string::npos);
}

TEST(Trace, ThatNoModelWroteIsRejected) {
  const auto complaint_of = [](const std::string& tokens, const StoredTensors& tensors) {
    const std::string header = safetensors_bytes(tensors).substr(8);
    const std::size_t end = header.find("}}") + 2;
    const std::string text = R"({"__metadata__":{"tokens":")" + tokens + R"("},)" + header.substr(1, end - 1);
    return complaint(TemporaryFile(little_endian(std::uint64_t{text.size()}) + text + header.substr(end)).path());
  };
  const StoredTensors one{{"lm_head", zeros({1, 4})}};
  for (const char* tokens : {"", "x", "1;2", "1,,2", "1,2,", "99999999999"}) {
    EXPECT_NE(complaint_of(tokens, one).find("has tokens '" + std::string(tokens) + "', expected ids"),
              std::string::npos)
        << complaint_of(tokens, one);
  }
  EXPECT_NE(complaint_of("1", {{"lm_head", zeros({1, 4}, DType::i64)}}).find("point 'lm_head' is i64, expected f32"),
            std::string::npos);
  const std::string repeated =
      complaint_of("1", {{"layers.0.attention.wq", zeros({1, 4})}, {"model.layers.0.self_attn.q_proj", zeros({1, 4})}});
  EXPECT_NE(repeated.find("'model.layers.0.self_attn.q_proj' is repeated under another name"), std::string::npos)
      << repeated;
}

TEST(TraceDifference, CountsValuesThatAreNotFinite) {
  const Model model = load_golden_model(load_golden("v3-dense"));
  const Point point = points_of(model).front();
  const auto difference = [&](float ours, float theirs) {
    Recording recording(model, kernels::choose(), {point}, 1);
    std::vector<float> values(recording.values(0).size());
    values[2] = ours;
    recording.see(point.shown, {values.data(), 1, values.size()}, 0, 0);
    values[2] = theirs;
    Trace trace;
    trace.tensors[point.name] = f32_tensor(recording.shape(0), values);
    return differences(trace, recording).front().relative;
  };
  EXPECT_EQ(difference(1, 2), 0.5);
  EXPECT_EQ(difference(NAN, NAN), 0);
  EXPECT_EQ(difference(INFINITY, INFINITY), 0);
  for (const auto& [ours, theirs] : {std::pair{NAN, 1.f}, {1.f, NAN}, {INFINITY, 1.f}, {1.f, 0.f}}) {
    EXPECT_EQ(difference(ours, theirs), INFINITY) << ours << " " << theirs;
  }
}

TEST(TraceDifference, AnExpertWithoutTokensDiffersInNothing) {
  const Model model = load_golden_model(load_golden("v3-moe"));
  const auto points = points_of(model);
  const auto point = std::ranges::find_if(points, [](const Point& each) { return each.expert.has_value(); });
  const Recording recording(model, kernels::choose(), {*point}, 1);
  Trace trace;
  trace.tensors[point->name] = zeros(recording.shape(0));
  EXPECT_EQ(differences(trace, recording).front().relative, 0);
}

TEST(TraceDifference, ShapesMayHaveABatchAndJoinedDimensions) {
  EXPECT_TRUE(is_shape_of_point({1, 2, 12}, {2, 3, 4}));
  EXPECT_TRUE(is_shape_of_point({6}, {1, 2, 3}));
  EXPECT_TRUE(is_shape_of_point({1, 1}, {1}));
  EXPECT_FALSE(is_shape_of_point({3, 2}, {2, 3})) << "transposed";
  EXPECT_FALSE(is_shape_of_point({2, 4}, {2, 3}));
}

}  // namespace
}  // namespace minimind
