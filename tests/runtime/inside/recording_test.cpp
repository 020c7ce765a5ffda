#include "runtime/inside/recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden_model.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

Recording record_all(const Model& model, std::span<const std::int32_t> tokens, KvType kv_type = KvType::f32) {
  return record(model, kernels::choose(), kv_type, points_of(model), tokens, [](std::size_t) {});
}

std::vector<float> plain_logits(const Model& model, std::span<const std::int32_t> tokens, KvType kv_type) {
  Context context(model.config, tokens.size(), kv_type);
  Forward forward(model, kernels::choose(), 2, tokens.size(), tokens.size());
  std::vector<float> logits(tokens.size() * model.config.vocab_size);
  forward.run(context, tokens, {logits.data(), tokens.size(), model.config.vocab_size});
  return logits;
}

class RecordingTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordingTest, HasTheLogitsOfAPlainRunBitForBit) {
  const GoldenCase golden = load_golden(GetParam());
  for (const WeightType type : {WeightType(), WeightType(DType::q8_0)}) {
    const Model model = load_golden_model(golden, type);
    for (const KvType kv_type : kv_types) {
      const Recording recording = record_all(model, golden.tokens, kv_type);
      const std::span<const float> logits = recording.values(recording.points().size() - 1);
      EXPECT_TRUE(std::ranges::equal(logits, plain_logits(model, golden.tokens, kv_type)));
    }
  }
}

// Every point has a value for each token, which is finite and not 0 for all.
TEST_P(RecordingTest, HasValuesOfEveryPoint) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const Recording recording = record_all(model, golden.tokens);
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    const Point& point = recording.points()[i];
    const std::span<const float> values = recording.values(i);
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) << point.name;
    const std::vector<std::size_t> shape = recording.shape(i);
    EXPECT_TRUE(point.expert || shape.front() == golden.tokens.size()) << point.name;
    for (std::size_t row = 0; row < shape.front(); ++row) {
      const auto of_row = values.subspan(row * values.size() / shape.front(), values.size() / shape.front());
      const bool may_be_zero = point.name.ends_with("chosen");
      EXPECT_TRUE(may_be_zero || std::any_of(of_row.begin(), of_row.end(), [](float x) { return x != 0; }))
          << point.name << " of row " << row;
    }
  }
}

TEST_P(RecordingTest, HasAttentionWeightsThatSumTo1) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const Recording recording = record_all(model, golden.tokens);
  for (std::size_t token = 0; token < golden.tokens.size(); ++token) {
    const auto weights = recording.row("model.layers.0.self_attn.weights", token);
    const std::size_t positions = golden.tokens.size();
    for (std::size_t head = 0; head < model.config.num_attention_heads; ++head) {
      double sum = 0;
      for (std::size_t position = 0; position < positions; ++position) {
        const float weight = weights[head * positions + position];
        EXPECT_TRUE(position <= token || weight == 0);
        sum += static_cast<double>(weight);
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RecordingTest,
                         testing::Values("v1-moe", "v2-early-dense", "v2-moe-5-experts", "v3-dense", "v3-moe",
                                         "v3-plain-gelu-bias", "v3-odd"),
                         test_name);

// Longer than a batch of Forward, so that later rows follow those of an earlier pass.
TEST(Recording, OfManyBatchesHasTheValuesOfOne) {
  const Model model = load_golden_model(load_golden("v3-moe"));
  std::vector<std::int32_t> tokens(batch_tokens + 9);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i * 7 % model.config.vocab_size);
  const Recording all = record_all(model, tokens);
  const std::span<const std::int32_t> start(tokens.data(), batch_tokens - 3);
  const Recording first = record_all(model, start);
  for (const char* name : {"model.layers.1.self_attn.q_rope", "model.layers.1.mlp.experts.weights",
                           "model.layers.1.mlp", "model.layers.1"}) {
    for (const std::size_t token : {std::size_t{0}, start.size() - 1}) {
      EXPECT_TRUE(std::ranges::equal(all.row(name, token), first.row(name, token))) << name;
    }
  }
  EXPECT_TRUE(std::ranges::equal(all.values(all.points().size() - 1), plain_logits(model, tokens, KvType::f32)));
}

TEST(Recording, RefusesMoreMemoryThanItsLimit) {
  const Model model = load_golden_model(load_golden("v3-dense"));
  try {
    const Recording recording(model, kernels::choose(), points_of(model), 20'000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("for 20000 tokens may take"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("expected at most 2147483648"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace minimind
