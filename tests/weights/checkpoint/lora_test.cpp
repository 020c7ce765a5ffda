#include "weights/checkpoint/lora.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/model/tensor_names.h"
#include "weights/tensor/half.h"

namespace minimind {
namespace {

constexpr const char* q_proj = "model.layers.0.self_attn.q_proj";

std::string part(const std::string& module, char half) {
  return module + ".lora." + half + ".weight";
}

// A of rank 2 and B for an [8, 8] matrix.
StoredTensors lora_for(const std::string& module) {
  return {{part(module, 'A'), counting_tensor({2, 8}, 1)}, {part(module, 'B'), counting_tensor({8, 2}, -5)}};
}

StoredTensors model() {
  return SmallModel{}.tensors();
}

std::vector<std::string> add(StoredTensors& tensors, const StoredTensors& lora, double scale = 1) {
  const TemporaryFile file(pth_bytes(lora));
  return add_lora(tensors, {file.path(), scale}).changed;
}

// What is said, after the name of the LoRA file.
std::string add_error(const StoredTensors& lora) {
  StoredTensors tensors = model();
  const TemporaryFile file(pth_bytes(lora));
  const std::string error = error_of([&] { add_lora(tensors, {file.path(), 1}); });
  EXPECT_TRUE(error.starts_with(file.path() + ": ")) << error;
  return error;
}

// All numbers are small integers, so that the sums are exact.
std::vector<float> added(const StoredTensor& weight, const StoredTensors& lora, const std::string& module,
                         float scale) {
  const auto a = floats_of(lora.at(part(module, 'A'))), b = floats_of(lora.at(part(module, 'B')));
  std::vector<float> result = floats_of(weight);
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t col = 0; col < 8; ++col) {
      result[row * 8 + col] += scale * (b[row * 2] * a[col] + b[row * 2 + 1] * a[8 + col]);
    }
  }
  return result;
}

TEST(LoraArgument, IsAPathWithAScaleOrWithout) {
  EXPECT_EQ(parse_lora_argument("a.pth").path, "a.pth");
  EXPECT_EQ(parse_lora_argument("a.pth").scale, 1.0);
  EXPECT_EQ(parse_lora_argument("out/a.pth:0.5").path, "out/a.pth");
  EXPECT_EQ(parse_lora_argument("out/a.pth:0.5").scale, 0.5);
  EXPECT_EQ(parse_lora_argument("a.pth:-1e-1").scale, -0.1);
  EXPECT_EQ(parse_lora_argument("a:b.pth:2").path, "a:b.pth");
  EXPECT_EQ(parse_lora_argument("./10:30/a.pth").path, "./10:30/a.pth") << "a colon in a folder's name is no scale";
}

TEST(LoraArgument, AScaleMustBeAFiniteNumber) {
  for (const char* argument :
       {"a.pth:", "a.pth:inf", "a.pth:nan", "a.pth:-inf", "a.pth:1e999", "a.pth:0.5x", "a.pth:1,5", "a.pth:0x10"}) {
    EXPECT_THROW(parse_lora_argument(argument), UsageError) << argument;
    const std::string error = error_of([&] { parse_lora_argument(argument); });
    EXPECT_NE(error.find("its scale is"), std::string::npos) << error;
    EXPECT_NE(error.find(argument), std::string::npos) << error;
  }
}

TEST(Lora, AddsTheProductToTheWeightItNames) {
  StoredTensors tensors = model();
  const StoredTensors before = tensors, lora = lora_for(q_proj);
  EXPECT_EQ(add(tensors, lora), std::vector<std::string>{std::string(q_proj) + ".weight"});
  for (const auto& [name, tensor] : before) {
    const bool named = name == std::string(q_proj) + ".weight";
    EXPECT_EQ(floats_of(tensors.at(name)), named ? added(tensor, lora, q_proj, 1) : floats_of(tensor)) << name;
    EXPECT_EQ(tensors.at(name).shape, tensor.shape) << name;
  }
  EXPECT_EQ(tensors.size(), before.size());
}

TEST(Lora, ScalesTheProduct) {
  StoredTensors tensors = model();
  const StoredTensor before = tensors.at(std::string(q_proj) + ".weight");
  add(tensors, lora_for(q_proj), -0.5);
  EXPECT_EQ(floats_of(tensors.at(std::string(q_proj) + ".weight")), added(before, lora_for(q_proj), q_proj, -0.5f));
}

TEST(Lora, SeveralAddUp) {
  StoredTensors tensors = model();
  const StoredTensor before = tensors.at(std::string(q_proj) + ".weight");
  add(tensors, lora_for(q_proj));
  add(tensors, lora_for(q_proj), 2);
  EXPECT_EQ(floats_of(tensors.at(std::string(q_proj) + ".weight")), added(before, lora_for(q_proj), q_proj, 3));
}

TEST(Lora, TakesNamesOfV1AndOfWrappers) {
  for (const char* module : {"layers.0.attention.wq", "module.model.layers.0.self_attn.q_proj",
                             "_orig_mod.model.layers.0.self_attn.q_proj"}) {
    StoredTensors tensors = model();
    EXPECT_EQ(add(tensors, lora_for(module)), std::vector<std::string>{std::string(q_proj) + ".weight"}) << module;
  }
}

TEST(Lora, KeepsAChangedHalfAsF32) {
  StoredTensors tensors = model();
  const std::string one = little_endian(to_f16(1.0f).bits);
  std::string ones;
  for (int i = 0; i < 64; ++i) ones += one;
  tensors[std::string(q_proj) + ".weight"] = make_tensor(DType::f16, {8, 8}, ones);
  add(tensors, lora_for(q_proj), 1.0 / 4096);
  const StoredTensor& changed = tensors.at(std::string(q_proj) + ".weight");
  EXPECT_EQ(changed.dtype, DType::f32);
  // 1 + (-5 x 1 - 4 x 9) / 4096, which binary16 would round
  EXPECT_EQ(floats_of(changed)[0], 1 - 41 / 4096.0f);
}

TEST(Lora, IsAddedOnceToAnUntouchedModel) {
  const GoldenCase golden = load_golden("v3-lora");
  OpenOptions options;
  const Checkpoint plain = open_checkpoint(golden.model_path, options);
  options.loras.push_back({*golden.lora_path, 1});
  const Checkpoint with_lora = open_checkpoint(golden.model_path, options);
  EXPECT_TRUE(plain.lora_changed.empty());
  ASSERT_FALSE(with_lora.lora_changed.empty());
  for (const auto& [name, tensor] : plain.tensors) {
    const auto& changed = with_lora.lora_changed;
    const bool named = std::find(changed.begin(), changed.end(), name) != changed.end();
    EXPECT_EQ(with_lora.tensors.at(name).dtype, named ? DType::f32 : tensor.dtype) << name;
  }
}

TEST(Lora, HalfAPairIsRejectedNamingTheOtherHalf) {
  StoredTensors lora = lora_for(q_proj);
  lora.erase(part(q_proj, 'B'));
  EXPECT_NE(add_error(lora).find(part(q_proj, 'B') + " is missing"), std::string::npos);
  lora = lora_for(q_proj);
  lora.erase(part(q_proj, 'A'));
  EXPECT_NE(add_error(lora).find(part(q_proj, 'A') + " is missing"), std::string::npos);
}

TEST(Lora, AModuleThatTheModelLacksIsNamed) {
  for (const char* module : {"model.layers.2.self_attn.q_proj", "model.layers.0.self_attn.w_proj", "lm_head", ""}) {
    EXPECT_NE(add_error(lora_for(module)).find(std::string("'") + module + "'"), std::string::npos) << module;
  }
}

TEST(Lora, EmbeddingsAreNotChanged) {
  EXPECT_NE(add_error({{part("model.embed_tokens", 'A'), counting_tensor({2, 8})},
                       {part("model.embed_tokens", 'B'), counting_tensor({12, 2})}})
                .find("model.embed_tokens"),
            std::string::npos);
  StoredTensors untied = {{"lm_head.weight", counting_tensor({8, 8})}};
  EXPECT_EQ(error_of([&] {
              merge_lora(untied, lora_for("lm_head"), {"l.pth", 1});
            }),
            "l.pth: changes lm_head; only LoRA on the layers' matrices is supported");
}

TEST(Lora, ShapesThatDoNotFitAreShown) {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{2, 7}, {8, 2}}, {{2, 8}, {7, 2}}, {{2, 8}, {8, 3}}, {{8, 2}, {2, 8}}};
  for (const auto& [a, b] : shapes) {
    const std::string error =
        add_error({{part(q_proj, 'A'), counting_tensor(a)}, {part(q_proj, 'B'), counting_tensor(b)}});
    for (const std::string& shown : {std::string(q_proj), shape_text(a), shape_text(b), std::string("[8, 8]")}) {
      EXPECT_NE(error.find(shown), std::string::npos) << error;
    }
  }
  // a norm is not a matrix
  EXPECT_NE(add_error({{part("model.norm", 'A'), counting_tensor({2, 8})},
                       {part("model.norm", 'B'), counting_tensor({8, 2})}})
                .find("[8]"),
            std::string::npos);
}

TEST(Lora, AnythingElseInTheFileIsRejected) {
  StoredTensors lora = lora_for(q_proj);
  lora.emplace("model.norm.weight", counting_tensor({8}));
  EXPECT_NE(add_error(lora).find("'model.norm.weight'"), std::string::npos);
  EXPECT_NE(add_error(model()).find("load a full checkpoint as the model"), std::string::npos);
  EXPECT_NE(add_error({{part(q_proj, 'A'), counting_tensor({16})}, {part(q_proj, 'B'), counting_tensor({8, 2})}})
                .find(part(q_proj, 'A')),
            std::string::npos);
  EXPECT_NE(add_error({{std::string(q_proj) + ".lora.C.weight", counting_tensor({2, 8})}}), "");
}

TEST(Lora, TwoMatricesForOneModuleAreRejected) {
  StoredTensors lora = lora_for(q_proj);
  for (auto& [name, tensor] : lora_for(std::string("module.") + q_proj)) lora.emplace(name, tensor);
  EXPECT_NE(add_error(lora).find(q_proj), std::string::npos);
}

TEST(Lora, AnEmptyFileIsRejected) {
  EXPECT_NE(add_error({}), "");
}

TEST(Lora, OfAWholeModelIsUsedAlone) {
  StoredTensors file = lora_for(q_proj);
  for (const auto& [name, tensor] : SmallModel{.hidden = 8, .ffn = 9}.tensors()) file.emplace("module." + name, tensor);
  StoredTensors tensors = model();
  const StoredTensors before = tensors;
  const TemporaryFile saved(pth_bytes(file));
  const LoraMerge merge = add_lora(tensors, {saved.path(), 2});
  EXPECT_EQ(merge.changed, std::vector<std::string>{std::string(q_proj) + ".weight"});
  EXPECT_EQ(merge.base_tensors, SmallModel{}.tensors().size());
  EXPECT_EQ(merge.smallest_rank, 2u);
  EXPECT_EQ(merge.largest_rank, 2u);
  for (const auto& [name, tensor] : before) {
    const bool named = name == std::string(q_proj) + ".weight";
    EXPECT_EQ(floats_of(tensors.at(name)), named ? added(tensor, lora_for(q_proj), q_proj, 2) : floats_of(tensor));
  }
}

TEST(Lora, InACheckpointIsMergedIntoIt) {
  const StoredTensors plain = model();
  for (const char* prefix : {"", "module.", "_orig_mod."}) {
    StoredTensors stored;
    for (const auto& [name, tensor] : plain) stored.emplace(prefix + name, tensor);
    for (const auto& [name, tensor] : lora_for(q_proj)) stored.emplace(prefix + name, tensor);
    const TemporaryFile file(pth_bytes(stored));
    const Checkpoint checkpoint = open_checkpoint(file.path(), {});
    ASSERT_TRUE(checkpoint.own_lora);
    EXPECT_EQ(checkpoint.own_lora->largest_rank, 2u);
    EXPECT_EQ(checkpoint.lora_changed, std::vector<std::string>{std::string(q_proj) + ".weight"});
    ASSERT_EQ(checkpoint.tensors.size(), plain.size());
    for (const auto& [name, tensor] : plain) {
      const bool named = name == std::string(q_proj) + ".weight";
      EXPECT_EQ(floats_of(checkpoint.tensors.at(name)),
                named ? added(tensor, lora_for(q_proj), q_proj, 1) : floats_of(tensor));
    }
  }
}

TEST(Lora, TheCheckpointsOwnLoraIsAddedOnce) {
  StoredTensors stored = model();
  for (const auto& [name, tensor] : lora_for(q_proj)) stored.emplace(name, tensor);
  const TemporaryFile file(pth_bytes(stored));
  OpenOptions options;
  options.loras.push_back({file.path(), 1});
  EXPECT_THROW(open_checkpoint(file.path(), options), UsageError);
  EXPECT_NE(error_of([&] { open_checkpoint(file.path(), options); }).find("with its LoRA merged already"),
            std::string::npos);
  const TemporaryFile another(pth_bytes(lora_for("model.layers.1.self_attn.q_proj")));
  options.loras = {{another.path(), 1}};
  EXPECT_EQ(open_checkpoint(file.path(), options).lora_changed.size(), 2u);
}

TEST(Lora, WithoutAModelIsNotACheckpoint) {
  const TemporaryFile file(pth_bytes(lora_for(q_proj)));
  EXPECT_EQ(error_of([&] { open_checkpoint(file.path(), {}); }).find(file.path() + ": is a LoRA without a model"), 0u);
}

TEST(Lora, ValuesThatAreNotFiniteAreItsError) {
  for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    for (const char half : {'A', 'B'}) {
      StoredTensors lora = lora_for(q_proj);
      StoredTensor& tensor = lora.at(part(q_proj, half));
      std::vector<float> values = floats_of(tensor);
      values[3] = value;
      tensor = f32_tensor(tensor.shape, values);
      const std::string error = add_error(lora);
      EXPECT_NE(error.find(part(q_proj, half) + " has a value of "), std::string::npos) << error;
    }
  }
}

TEST(Lora, AProductTooLargeForF32IsItsError) {
  StoredTensors tensors = model();
  const TemporaryFile file(pth_bytes(lora_for(q_proj)));
  const std::string error = error_of([&] { add_lora(tensors, {file.path(), 1e300}); });
  EXPECT_EQ(error.find(file.path() + ": its product for " + q_proj), 0u) << error;
}

TEST(Lora, TheFirstRowThatIsTooLargeIsNamed) {
  StoredTensors tensors = {{std::string(q_proj) + ".weight", zeros({2, 65})}};
  std::vector<float> a(65);
  a[0] = 1, a[64] = 2;
  const TemporaryFile file(pth_bytes(
      {{part(q_proj, 'A'), f32_tensor({1, 65}, a)}, {part(q_proj, 'B'), f32_tensor({2, 1}, {2e38f, 3e38f})}}));
  const auto error_at = [&](double scale) { return error_of([&] { add_lora(tensors, {file.path(), scale}); }); };
  EXPECT_NE(error_at(0.7).find("in row 1"), std::string::npos) << error_at(0.7);
  EXPECT_NE(error_at(1.5).find("in row 0"), std::string::npos) << "found after that of row 1: " << error_at(1.5);
}

TEST(Lora, AnInfiniteWeightIsNotItsError) {
  StoredTensors tensors = model();
  StoredTensor& weight = tensors.at(std::string(q_proj) + ".weight");
  std::vector<float> values = floats_of(weight);
  values[3] = std::numeric_limits<float>::infinity();
  weight = f32_tensor(weight.shape, values);
  EXPECT_EQ(add(tensors, lora_for(q_proj)).size(), 1u);
  EXPECT_EQ(floats_of(tensors.at(std::string(q_proj) + ".weight"))[3], values[3]);
}

TEST(Lora, MatricesOfIntegersAreRejected) {
  StoredTensors stored = model();
  stored[part(q_proj, 'A')] = zeros({2, 8}, DType::i64);
  stored[part(q_proj, 'B')] = zeros({8, 2});
  const TemporaryFile file(safetensors_bytes(stored));
  EXPECT_EQ(error_of([&] { open_checkpoint(file.path(), {}); }),
            file.path() + ": '" + part(q_proj, 'A') +
                "' is [2, 8] of i64, expected a matrix of f32, f16 or bf16, as MiniMind's LoRAs have");
}

TEST(Lora, LoraOfExpertsIsOmittedInADenseModel) {
  StoredTensors lora = lora_for(q_proj);
  for (const char* module : {"model.layers.0.mlp.experts.1.up_proj", "model.layers.0.mlp.shared_experts.0.up_proj",
                             "model.layers.1.mlp.gate"}) {
    for (const auto& [name, tensor] : lora_for(module)) lora.emplace(name, tensor);
  }
  StoredTensors tensors = model();
  const TemporaryFile file(pth_bytes(lora));
  const LoraMerge merge = add_lora(tensors, {file.path(), 1});
  EXPECT_EQ(merge.changed, std::vector<std::string>{std::string(q_proj) + ".weight"});
  EXPECT_EQ(merge.without_experts.size(), 3u);
  const TemporaryFile of_experts_alone(pth_bytes(lora_for("model.layers.0.mlp.experts.1.up_proj")));
  const LoraMerge nothing = add_lora(tensors, {of_experts_alone.path(), 1});
  EXPECT_TRUE(nothing.changed.empty());
  EXPECT_EQ(nothing.without_experts.size(), 1u);
}

TEST(Lora, OfAnExpertThatAnMoeModelLacksIsRejected) {
  StoredTensors tensors = mixture(SmallModel{}, 2, 0).tensors();
  StoredTensors lora = lora_for(q_proj);
  for (const auto& [name, tensor] : lora_for("model.layers.0.mlp.experts.2.up_proj")) lora.emplace(name, tensor);
  const TemporaryFile file(pth_bytes(lora));
  EXPECT_NE(error_of([&] { add_lora(tensors, {file.path(), 1}); }).find("experts.2.up_proj"), std::string::npos);
}

TEST(Lora, NotesNameRanksAndUnusedParts) {
  Checkpoint checkpoint;
  EXPECT_TRUE(checkpoint_notes(checkpoint).empty());
  checkpoint.own_lora = LoraMerge{.path = "m.pth", .changed = {"a", "b"}, .smallest_rank = 4, .largest_rank = 8};
  checkpoint.loras.push_back({.path = "l.pth",
                              .changed = {"a"},
                              .smallest_rank = 8,
                              .largest_rank = 8,
                              .without_experts = {"x"},
                              .base_tensors = 9});
  const std::vector<Fact> notes = checkpoint_notes(checkpoint);
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes[0].english(),
            "the checkpoint's own LoRA of ranks 4 to 8 merged into 2 tensors (first: a), kept as f32");
  EXPECT_EQ(notes[1].english(), "LoRA of rank 8 merged into 1 tensor (first: a), kept as f32");
  EXPECT_EQ(notes[2].english(), "l.pth: only its LoRA is used, not the 9 tensors of the model it also holds");
  EXPECT_EQ(notes[3].english(), "l.pth: its LoRA for 1 module of experts is not used (first: x): the model is dense");
  checkpoint.own_lora = LoraMerge{.path = "m.pth", .without_experts = {"x", "y"}};
  checkpoint.loras = {{.path = "l.pth"}};
  const std::vector<Fact> unused = checkpoint_notes(checkpoint);
  ASSERT_EQ(unused.size(), 1u);
  EXPECT_EQ(unused[0].english(), "m.pth: its LoRA for 2 modules of experts is not used (first: x): the model is dense");
}

TEST(Lora, AMissingFileIsNamed) {
  StoredTensors tensors = model();
  const std::string error = error_of([&] { add_lora(tensors, {"/nowhere/lora.pth", 1}); });
  EXPECT_TRUE(error.starts_with("/nowhere/lora.pth: ")) << error;
}

// The sums have their products in the order of the ranks, in double, whatever the blocks are.
TEST(Lora, TheProductIsThatOfOneSumAfterTheOther) {
  const std::size_t rows = 7, cols = 70, rank = 5;
  std::vector<float> a(rank * cols), b(rows * rank), w(rows * cols);
  std::size_t seed = 1;
  for (std::vector<float>* values : {&a, &b, &w}) {
    for (float& value : *values) value = 1 / static_cast<float>(1 + (seed = seed * 48271 % 2147483647) % 1000);
  }
  std::vector<float> wanted(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    double sum = 0;
    for (std::size_t r = 0; r < rank; ++r) sum += static_cast<double>(b[i / cols * rank + r]) * a[r * cols + i % cols];
    wanted[i] = static_cast<float>(w[i] + 0.3 * sum);
  }
  StoredTensors tensors{{std::string(q_proj) + ".weight", f32_tensor({rows, cols}, w)}};
  merge_lora(tensors,
             {{part(q_proj, 'A'), f32_tensor({rank, cols}, a)}, {part(q_proj, 'B'), f32_tensor({rows, rank}, b)}},
             {"a.pth", 0.3});
  EXPECT_EQ(floats_of(tensors.begin()->second), wanted);
}

TEST(Lora, RanksHaveALimit) {
  const auto of_rank = [](std::size_t rank) {
    return StoredTensors{{part(q_proj, 'A'), zeros({rank, 8})}, {part(q_proj, 'B'), zeros({8, rank})}};
  };
  StoredTensors tensors = model();
  EXPECT_EQ(add(tensors, of_rank(largest_rank)).size(), 1u);
  EXPECT_NE(add_error(of_rank(largest_rank + 1)).find("has rank 1025, expected at most 1024"), std::string::npos);
}

}  // namespace
}  // namespace minimind
