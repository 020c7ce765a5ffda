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

Recording record_without(const Model& model, std::span<const std::int32_t> tokens, std::vector<SwitchedOff> without) {
  return record(
      model, kernels::choose(), KvType::f32, points_of(model), tokens, [](std::size_t) {}, std::move(without));
}

class SwitchedOffTest : public testing::TestWithParam<std::string> {};

// Without all heads and all of the FFN, every layer adds 0.
TEST_P(SwitchedOffTest, NothingIsAddedWithoutAllParts) {
  const GoldenCase golden = load_golden(GetParam());
  for (const WeightType type : {WeightType(), WeightType(DType::q8_0)}) {
    const Model model = load_golden_model(golden, type);
    std::vector<SwitchedOff> all;
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      for (std::size_t i = 0; i < model.config.num_attention_heads; ++i) all.push_back({.layer = layer, .head = i});
      if (const auto* const moe = std::get_if<MixtureOfExperts>(&model.layers[layer].mlp)) {
        for (std::size_t i = 0; i < moe->experts.size(); ++i) all.push_back({.layer = layer, .expert = i});
      } else {
        const std::size_t width = std::get<FeedForward>(model.layers[layer].mlp).up_proj.rows();
        for (std::size_t i = 0; i < width; ++i) all.push_back({.layer = layer, .neuron = i});
      }
    }
    const Recording recording = record_without(model, golden.tokens, all);
    const std::string last = "model.layers." + std::to_string(model.layers.size() - 1);
    for (std::size_t token = 0; token < golden.tokens.size(); ++token) {
      EXPECT_TRUE(std::ranges::equal(recording.row(last, token), recording.row("model.embed_tokens", token)));
    }
  }
}

// What is before the part stays; at the part its own values are 0 and the others stay.
TEST_P(SwitchedOffTest, OneHeadIsOffAlone) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const Recording whole = record_all(model, golden.tokens);
  const Recording without = record_without(model, golden.tokens, {{.layer = 1, .head = 2}});
  const std::size_t head_dim = model.config.head_dim;
  const std::string attention = "model.layers.1.self_attn.";
  for (std::size_t token = 0; token < golden.tokens.size(); ++token) {
    for (const std::string& name : {std::string("model.layers.0"), attention + "weights"}) {
      EXPECT_TRUE(std::ranges::equal(without.row(name, token), whole.row(name, token))) << name;
    }
    const auto before = whole.row(attention + "o_proj.input", token);
    const auto after = without.row(attention + "o_proj.input", token);
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i], i / head_dim == 2 ? 0 : before[i]);
    EXPECT_FALSE(std::ranges::equal(without.row(attention + "o_proj", token), whole.row(attention + "o_proj", token)));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, SwitchedOffTest, testing::Values("v1-moe", "v3-dense", "v3-moe"), test_name);

TEST(SwitchedOff, ANeuronOfAnExpertIsOffAlone) {
  const GoldenCase golden = load_golden("v3-moe");
  const Model model = load_golden_model(golden);
  const Recording whole = record_all(model, golden.tokens);
  const Recording without = record_without(model, golden.tokens, {{.layer = 0, .expert = 1, .neuron = 3}});
  const std::size_t width = std::get<MixtureOfExperts>(model.layers[0].mlp).experts[1].up_proj.rows();
  for (std::size_t expert = 0; expert < 4; ++expert) {
    const std::string name = "model.layers.0.mlp.experts." + std::to_string(expert) + ".down_proj.input";
    const auto before = whole.values(name), after = without.values(name);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i], expert == 1 && i % width == 3 ? 0 : before[i]) << name;
    }
  }
}

TEST(SwitchedOff, NamesAPartThatTheModelDoesNotHave) {
  const Model dense = load_golden_model(load_golden("v3-dense")), moe = load_golden_model(load_golden("v3-moe"));
  const auto message = [](const Model& model, const SwitchedOff& part) -> std::string {
    try {
      check_part(model, part);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(dense, {.layer = 1, .head = 0}), "");
  EXPECT_EQ(message(dense, {.layer = 99, .head = 0}).find("layer is 99, expected 0 to "), 0u);
  EXPECT_EQ(message(dense, {.layer = 0, .head = 99}).find("head is 99, expected 0 to "), 0u);
  EXPECT_EQ(message(dense, {.layer = 0, .neuron = 9999}).find("neuron is 9999, expected 0 to "), 0u);
  EXPECT_EQ(message(dense, {.layer = 0, .expert = 0}).find("expert is 0, expected none"), 0u);
  EXPECT_EQ(message(moe, {.layer = 0, .neuron = 0}).find("expert is missing"), 0u);
  EXPECT_EQ(message(moe, {.layer = 0, .expert = 99}).find("expert is 99, expected 0 to "), 0u);
  EXPECT_EQ(message(dense, {.layer = 0}).find("the part of a layer is unclear"), 0u);
  EXPECT_EQ(message(dense, {.layer = 0, .head = 0, .neuron = 0}).find("the part of a layer is unclear"), 0u);
}

}  // namespace
}  // namespace minimind
