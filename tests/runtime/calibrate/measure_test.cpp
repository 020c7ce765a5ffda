#include "runtime/calibrate/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/calibrate/calibration.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/stored_numbers.h"

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
  norm.data = StoredBytes(std::vector<std::byte>(bytes.begin(), bytes.end()));
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

// e H eᵀ of a matrix and its quantised form, summed over the rows.
double weighed_error(const StoredTensor& exact, const StoredTensor& quantised, const std::vector<float>& moments) {
  const std::vector<float> a = to_floats(exact), b = to_floats(quantised);
  const std::size_t cols = exact.shape[1];
  double sum = 0;
  for (std::size_t row = 0; row < exact.shape[0]; ++row) {
    const auto error = [&](std::size_t i) { return static_cast<double>(a[row * cols + i] - b[row * cols + i]); };
    for (std::size_t i = 0; i < cols; ++i) {
      for (std::size_t j = 0; j < cols; ++j) sum += error(i) * error(j) * static_cast<double>(moments[i * cols + j]);
    }
  }
  return sum;
}

// The matrix as plain rounding quantises it, which knows of no inputs.
StoredTensor plainly_rounded(const StoredTensor& exact, DType type) {
  const std::vector<float> values = to_floats(exact);
  std::vector<std::byte> blocks(values.size() / block_shape(type).elements * block_shape(type).bytes);
  quantize(type, values.data(), values.size(), blocks.data());
  StoredTensor rounded = exact;
  rounded.dtype = type;
  rounded.data = StoredBytes(std::move(blocks));
  return rounded;
}

// Inputs of other texts have parts in the directions that the few tokens do not show.
TEST(Calibration, FewTokensHardlyRaiseTheErrorInDirectionsThatTheyDoNotShow) {
  const Checkpoint checkpoint = golden_checkpoint(false);
  CalibrationText text = text_of(checkpoint, 40);
  text.tokens.resize(3);
  text.predicted.assign(3, true);
  text.ends = {3};
  Calibration calibration(checkpoint, text, 1, [](std::size_t, std::size_t) {});
  double error = 0, plain = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (name.find("_proj.") == std::string::npos || !can_calibrate(DType::q4_0, tensor.shape[1])) continue;
    const std::size_t cols = tensor.shape[1];
    std::vector<float> every_direction(cols * cols);
    for (std::size_t i = 0; i < cols; ++i) every_direction[i * cols + i] = 1;
    error += weighed_error(tensor, calibration.quantize(name, DType::q4_0), every_direction);
    plain += weighed_error(tensor, plainly_rounded(tensor, DType::q4_0), every_direction);
  }
  ASSERT_GT(plain, 0);
  EXPECT_LT(error, 1.2 * plain);
}

TEST(Calibration, ExpertsThatNoTokenReachesTakeAfterTheOthers) {
  const Checkpoint checkpoint = open_checkpoint(load_golden("v3-moe").model_path, {});
  CalibrationText text = text_of(checkpoint, 400);
  for (std::size_t i = 0; i < 400; ++i) text.tokens[i] = i % 20 < 10 ? 5 : 9;  // these reach some experts only
  const Measurement measurement = measure(checkpoint, text, kernels::choose(), 1, [](std::size_t, std::size_t) {});
  Calibration calibration(checkpoint, text, 1, [](std::size_t, std::size_t) {});
  std::size_t compared = 0;
  for (const char* layer : {"model.layers.0.mlp.experts.", "model.layers.1.mlp.experts."}) {
    std::vector<float> moments(32 * 32);
    std::vector<std::string> unreached;
    for (int expert = 0; expert < 4; ++expert) {
      const std::string name = layer + std::to_string(expert) + ".up_proj.weight";
      const auto found = measurement.matrices.find(name);
      if (found == measurement.matrices.end()) {
        unreached.push_back(name);
        continue;
      }
      for (std::size_t i = 0; i < moments.size(); ++i) moments[i] += found->second.inputs[i];
    }
    for (const std::string& name : unreached) {
      const StoredTensor& exact = checkpoint.tensors.at(name);
      const double error = weighed_error(exact, calibration.quantize(name, DType::iq4_nl), moments);
      EXPECT_LT(error, 0.2 * weighed_error(exact, plainly_rounded(exact, DType::iq4_nl), moments)) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace minimind
