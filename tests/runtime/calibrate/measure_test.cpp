#include "runtime/calibrate/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/calibrate/calibration.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

CalibrationText text_of(const Checkpoint& checkpoint, std::size_t tokens) {
  CalibrationText text;
  for (std::size_t i = 0; i < tokens; ++i) {
    text.tokens.push_back(static_cast<std::int32_t>((i * i * 7 + i) % checkpoint.config.vocab_size));
    text.predicted.push_back(i % 20 > 2);
    if (i % 20 == 19) text.ends.push_back(i + 1);
  }
  return text;
}

Measurement measured(const Checkpoint& checkpoint, std::size_t threads) {
  return measure(checkpoint, text_of(checkpoint, 400), kernels::choose(), threads, [](std::size_t, std::size_t) {});
}

Checkpoint golden_checkpoint(bool mixture) {
  for (const std::string& name : golden_names()) {
    const GoldenCase golden = load_golden(name);
    Checkpoint checkpoint = open_checkpoint(golden.model_path, {});
    if ((checkpoint.config.num_experts > 0) == mixture) return checkpoint;
  }
  throw Error("there is no such case");
}

TEST(Measure, DoesNotDependOnTheNumberOfThreads) {
  for (const bool mixture : {false, true}) {
    const Checkpoint checkpoint = golden_checkpoint(mixture);
    const Measurement one = measured(checkpoint, 1), three = measured(checkpoint, 3);
    EXPECT_EQ(one.nats, three.nats);
    ASSERT_EQ(one.matrices.size(), three.matrices.size());
    for (const auto& [name, moments] : one.matrices) {
      EXPECT_EQ(moments.inputs, three.matrices.at(name).inputs) << name;
      EXPECT_EQ(moments.row_weights, three.matrices.at(name).row_weights) << name;
    }
  }
}

TEST(Measure, CountsThePredictedTokens) {
  const Measurement one = measured(golden_checkpoint(false), 1);
  EXPECT_EQ(one.predicted, 400u / 20 * 17);
  EXPECT_GT(one.nats, 0);
}

TEST(Measure, NamesTheLayerWithNumbersThatAreNotFinite) {
  Checkpoint checkpoint = golden_checkpoint(false);
  StoredTensor& norm = checkpoint.tensors.at("model.layers.1.input_layernorm.weight");
  std::vector<float> values(checkpoint.config.hidden_size, std::numeric_limits<float>::quiet_NaN());
  const auto bytes = std::as_bytes(std::span(values));
  norm.dtype = DType::f32;
  norm.copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  norm.data = *norm.copy;
  const std::string message = error_of([&] { measured(checkpoint, 2); });
  EXPECT_NE(message.find("the outputs of layer 1 are not finite"), std::string::npos) << message;
}

TEST(Measure, RejectsTokensOutsideTheVocabulary) {
  const Checkpoint checkpoint = golden_checkpoint(false);
  CalibrationText text = text_of(checkpoint, 40);
  text.tokens[5] = static_cast<std::int32_t>(checkpoint.config.vocab_size);
  const std::string message =
      error_of([&] { measure(checkpoint, text, kernels::choose(), 1, [](std::size_t, std::size_t) {}); });
  EXPECT_NE(message.find("is not in the model's vocabulary"), std::string::npos) << message;
}

TEST(Calibration, QuantisesExpertsThatNoTokenReaches) {
  const Checkpoint checkpoint = golden_checkpoint(true);
  CalibrationText text = text_of(checkpoint, 400);
  text.tokens.resize(2);
  text.predicted.resize(2);
  text.predicted[1] = true;
  text.ends = {2};
  Calibration calibration(checkpoint, text, 1, [](std::size_t, std::size_t) {});
  EXPECT_EQ(calibration.least_coverage().tokens, 0u);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (name.find(".experts.") == std::string::npos || tensor.shape.size() != 2) continue;
    if (!can_calibrate(DType::q8_0, tensor.shape[1])) continue;
    EXPECT_TRUE(std::isfinite(calibration.loss(name, DType::q8_0))) << name;
    EXPECT_EQ(calibration.quantize(name, DType::q8_0).dtype, DType::q8_0) << name;
  }
}

}  // namespace
}  // namespace minimind
