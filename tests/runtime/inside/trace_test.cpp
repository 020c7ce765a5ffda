#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/inside/trace_difference.h"
#include "runtime/inside/trace_file.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden_model.h"
#include "tests/support/linear_time.h"
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

}  // namespace
}  // namespace minimind
