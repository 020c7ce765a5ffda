#include "weights/model/check_tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/infer.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/model/tensor_names.h"

namespace minimind {
namespace {

constexpr const char* q_proj = "model.layers.1.self_attn.q_proj.weight";

StoredTensors canonical(const SmallModel& model) {
  return to_canonical_names(model.tensors(), "test.pth").tensors;
}

Config config_of(const SmallModel& model) {
  return infer(model.tensors(), model.gated ? "" : R"({"hidden_act": "relu"})").config;
}

// What is said about `tensors`, which should be those of `model`.
std::string check_error(const SmallModel& model, const StoredTensors& tensors) {
  return error_of([&] { check_tensors(tensors, config_of(model), "test.pth"); });
}

SmallModel ungated() {
  SmallModel model;
  model.gated = false;
  return model;
}

std::vector<SmallModel> models() {
  return {SmallModel{}, small_v1(), mixture(v2_by_habit(), 3, 1), ungated()};
}

TEST(ExpectedTensors, WholeModelsPass) {
  for (const SmallModel& model : models()) EXPECT_EQ(check_error(model, canonical(model)), "");
}

TEST(ExpectedTensors, EveryTensorThatIsMissingIsNamed) {
  for (const SmallModel& model : models()) {
    for (const auto& [name, tensor] : canonical(model)) {
      StoredTensors tensors = canonical(model);
      tensors.erase(name);
      const std::string error = check_error(model, tensors);
      EXPECT_TRUE(error.starts_with("test.pth: tensor '")) << "without " << name << ": " << error;
      if (name.ends_with("mlp.gate.weight")) continue;  // an MoE layer without a router looks like a dense layer
      EXPECT_NE(error.find("'" + name + "' is missing"), std::string::npos) << error;
    }
  }
}

TEST(ExpectedTensors, EveryTensorOfAnotherShapeIsShownWithBothShapes) {
  for (const SmallModel& model : models()) {
    for (const auto& [name, tensor] : canonical(model)) {
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{7, 7}, Shape{1, 1, 1}}) {
        StoredTensors tensors = canonical(model);
        tensors[name] = counting_tensor(shape);
        const std::string error = check_error(model, tensors);
        EXPECT_NE(error.find(name), std::string::npos) << error;
        EXPECT_NE(error.find(shape_text(shape) + ", expected " + shape_text(tensor.shape)), std::string::npos) << error;
      }
    }
  }
}

TEST(ExpectedTensors, ATransposedMatrixIsRejected) {
  StoredTensors tensors = canonical({});
  tensors["model.layers.0.mlp.down_proj.weight"] = counting_tensor({6, 8});
  EXPECT_NE(check_error({}, tensors).find("is [6, 8], expected [8, 6]"), std::string::npos);
}

TEST(ExpectedTensors, AnUnknownTensorIsNamed) {
  for (const char* name : {"model.layers.0.self_attn.q_proj.bias", "model.layers.2.input_layernorm.weight", "step",
                           "lm_head.weight", "model.layers.00.x"}) {
    StoredTensors tensors = canonical({});
    tensors.emplace(name, counting_tensor({8}));
    const std::string error = check_error({}, tensors);
    EXPECT_NE(error.find(std::string("'") + name + "' is not part of"), std::string::npos) << error;
  }
}

TEST(ExpectedTensors, ExpertsWithoutARouterAreReported) {
  StoredTensors tensors = canonical({});
  tensors.emplace("model.layers.0.mlp.experts.0.up_proj.weight", counting_tensor({8}));
  EXPECT_NE(check_error({}, tensors).find("'model.layers.0.mlp.gate.weight'"), std::string::npos);
}

TEST(ExpectedTensors, OneExpertTooManyIsUnknown) {
  StoredTensors tensors = canonical(mixture(v2_by_habit(), 3, 1));
  tensors.emplace("model.layers.0.mlp.experts.3.up_proj.weight", counting_tensor({6, 8}));
  EXPECT_NE(check_error(mixture(v2_by_habit(), 3, 1), tensors).find("experts.3.up_proj.weight' is not part of"),
            std::string::npos);
}

TEST(ExpectedTensors, SaysHowManyMoreThereAre) {
  StoredTensors tensors = canonical({});
  tensors.erase(q_proj);
  tensors.erase("model.layers.1.self_attn.v_proj.weight");
  tensors.erase("model.norm.weight");
  const std::string error = check_error({}, tensors);
  EXPECT_NE(error.find(std::string("'") + q_proj + "' and 2 more are missing"), std::string::npos) << error;
  tensors = canonical({});
  for (const char* name : {"a", "b"}) tensors.emplace(name, zeros({1}));
  EXPECT_NE(check_error({}, tensors).find("'a' and 1 more are not part of"), std::string::npos);
}

TEST(ExpectedTensors, OnlyF32F16AndBf16AreWeights) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    StoredTensors tensors = canonical({});
    tensors[q_proj] = zeros({8, 8}, type);
    EXPECT_EQ(check_error({}, tensors), "") << name_of(type);
  }
  for (const DType type : {DType::f64, DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::boolean}) {
    StoredTensors tensors = canonical({});
    tensors[q_proj] = zeros({8, 8}, type);
    const std::string error = check_error({}, tensors);
    EXPECT_NE(error.find(q_proj), std::string::npos) << error;
    EXPECT_NE(error.find("stored as " + std::string(name_of(type))), std::string::npos) << error;
  }
}

TEST(ExpectedTensors, AnUntiedLmHeadIsRequired) {
  Config config = config_of({});
  config.tie_word_embeddings = false;
  StoredTensors tensors = canonical({});
  const auto check = [&] { check_tensors(tensors, config, "test.pth"); };
  EXPECT_NE(error_of(check).find("'lm_head.weight' is missing"), std::string::npos);
  tensors.emplace("lm_head.weight", counting_tensor({12, 8}));
  EXPECT_EQ(error_of(check), "");
}

TEST(ExpectedTensors, EveryFfnMayHaveBiases) {
  StoredTensors tensors = canonical({});
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.emplace(std::string(layer) + "mlp.gate_proj.bias", counting_tensor({6}));
    tensors.emplace(std::string(layer) + "mlp.up_proj.bias", counting_tensor({6}));
    tensors.emplace(std::string(layer) + "mlp.down_proj.bias", counting_tensor({8}));
  }
  EXPECT_EQ(check_error({}, tensors), "");
  tensors["model.layers.0.mlp.up_proj.bias"] = counting_tensor({8});
  EXPECT_NE(check_error({}, tensors).find("up_proj.bias is [8], expected [6]"), std::string::npos);
}

TEST(ExpectedTensors, ABiasOfAGateWithoutItsMatrixIsHalfAGate) {
  SmallModel model = ungated();
  model.layers = 1;
  StoredTensors tensors = canonical(model);
  tensors.emplace("model.layers.0.mlp.gate_proj.bias", counting_tensor({6}));
  EXPECT_NE(check_error(model, tensors).find("'model.layers.0.mlp.gate_proj.weight' is missing"), std::string::npos);
}

TEST(ExpectedTensors, QNormIsAcceptedOnlyIfTheFamilyHasIt) {
  StoredTensors tensors = canonical(small_v1());
  tensors.emplace("model.layers.0.self_attn.q_norm.weight", counting_tensor({2}));
  EXPECT_NE(check_error(small_v1(), tensors).find("q_norm.weight' is not part of"), std::string::npos);
}

// Not every one of them is named and kept.
TEST(ExpectedTensors, TooManyThatAreMissingEndTheCheck) {
  Config config = config_of(SmallModel{});
  config.num_hidden_layers = 100'000;
  EXPECT_EQ(error_of([&] { check_tensors(canonical(SmallModel{}), config, "test.pth"); }),
            "test.pth: tensor 'model.layers.2.input_layernorm.weight' and 65536 more are missing at least");
}

}  // namespace
}  // namespace minimind
