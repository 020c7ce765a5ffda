#include "weights/model/tensor_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/huggingface/folder.h"
#include "weights/model/minimind_names.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

using Names = std::vector<std::string>;

StoredTensors prefixed(const StoredTensors& tensors, const std::string& prefix) {
  StoredTensors result;
  for (const auto& [name, tensor] : tensors) result.emplace(prefix + name, tensor);
  return result;
}

Names names_of(const StoredTensors& tensors) {
  Names names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

Names canonical_names_of(const StoredTensors& tensors) {
  return names_of(to_canonical_names(tensors, "test.pth").tensors);
}

StoredTensors with(StoredTensors tensors, const std::string& name, const Shape& shape) {
  tensors.emplace(name, counting_tensor(shape));
  return tensors;
}

std::string canonical_error(const StoredTensors& tensors) {
  return error_of([&] { to_canonical_names(tensors, "test.pth"); });
}

TEST(CanonicalName, LeavesHuggingFaceNamesAlone) {
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                           "model.layers.11.mlp.experts.3.gate_proj.weight", "model.norm.weight", "lm_head.weight"}) {
    EXPECT_EQ(canonical_name(name), name);
  }
}

TEST(CanonicalName, RemovesWrapperPrefixesInAnyNesting) {
  for (const char* prefix : {"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "module.module."}) {
    EXPECT_EQ(canonical_name(std::string(prefix) + "model.norm.weight"), "model.norm.weight");
    EXPECT_EQ(canonical_name(std::string(prefix) + "norm.weight"), "model.norm.weight");
  }
}

TEST(CanonicalName, TranslatesEveryNameOfV1) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"tok_embeddings.weight", "model.embed_tokens.weight"},
      {"norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"layers.3.attention.wq.weight", "model.layers.3.self_attn.q_proj.weight"},
      {"layers.3.attention.wk.weight", "model.layers.3.self_attn.k_proj.weight"},
      {"layers.3.attention.wv.weight", "model.layers.3.self_attn.v_proj.weight"},
      {"layers.3.attention.wo.weight", "model.layers.3.self_attn.o_proj.weight"},
      {"layers.3.attention_norm.weight", "model.layers.3.input_layernorm.weight"},
      {"layers.3.ffn_norm.weight", "model.layers.3.post_attention_layernorm.weight"},
      {"layers.3.feed_forward.w1.weight", "model.layers.3.mlp.gate_proj.weight"},
      {"layers.3.feed_forward.w2.weight", "model.layers.3.mlp.down_proj.weight"},
      {"layers.3.feed_forward.w3.weight", "model.layers.3.mlp.up_proj.weight"},
      {"layers.3.feed_forward.w1.bias", "model.layers.3.mlp.gate_proj.bias"},
      {"layers.3.feed_forward.gate.weight", "model.layers.3.mlp.gate.weight"},
      {"layers.3.feed_forward.experts.2.w1.weight", "model.layers.3.mlp.experts.2.gate_proj.weight"},
      {"layers.3.feed_forward.experts.2.w2.weight", "model.layers.3.mlp.experts.2.down_proj.weight"},
      {"layers.3.feed_forward.shared_experts.w3.weight", "model.layers.3.mlp.shared_experts.0.up_proj.weight"},
  };
  for (const auto& [v1, hugging_face] : names) EXPECT_EQ(canonical_name(v1), hugging_face);
}

TEST(CanonicalName, TranslatesTheModulesOfALora) {
  EXPECT_EQ(canonical_name("layers.0.attention.wq.lora.A.weight"), "model.layers.0.self_attn.q_proj.lora.A.weight");
  EXPECT_EQ(canonical_name("module.model.layers.0.self_attn.q_proj.lora.B.weight"),
            "model.layers.0.self_attn.q_proj.lora.B.weight");
}

TEST(CanonicalName, GivesTheInnerModuleItsPrefix) {
  EXPECT_EQ(canonical_name("embed_tokens.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(canonical_name("layers.0.self_attn.q_proj.weight"), "model.layers.0.self_attn.q_proj.weight");
}

TEST(CanonicalName, PassesOnWhatItDoesNotKnow) {
  EXPECT_EQ(canonical_name("transformer.h.0.attn.weight"), "transformer.h.0.attn.weight");
  EXPECT_EQ(canonical_name(""), "");
}

TEST(LayerTensor, IsTheNameInALayer) {
  EXPECT_EQ(layer_tensor(11, "mlp.gate.weight"), "model.layers.11.mlp.gate.weight");
}

TEST(Families, BothStylesAreEqual) {
  SmallModel model = small_v1();
  const CanonicalTensors old_style = to_canonical_names(model.tensors(), "test.pth");
  model.v1_names = false;
  const CanonicalTensors new_style = to_canonical_names(model.tensors(), "test.pth");
  EXPECT_EQ(old_style.style, NamingStyle::v1);
  EXPECT_EQ(new_style.style, NamingStyle::hugging_face);
  EXPECT_EQ(names_of(old_style.tensors), names_of(new_style.tensors));
  EXPECT_EQ(names_of(new_style.tensors), names_of(model.tensors()));
}

TEST(Families, MoeLayersOfBothStylesAreEqual) {
  SmallModel model = small_v1();
  model.experts = 3;
  model.shared_experts = 1;
  const Names old_style = canonical_names_of(model.tensors());
  model.v1_names = false;
  EXPECT_EQ(old_style, canonical_names_of(model.tensors()));
}

TEST(Families, WrapperPrefixesMakeNoDifference) {
  for (const SmallModel& model : {SmallModel{}, small_v1()}) {
    const CanonicalTensors plain = to_canonical_names(model.tensors(), "test.pth");
    for (const char* prefix : {"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
      const CanonicalTensors wrapped = to_canonical_names(prefixed(model.tensors(), prefix), "test.pth");
      EXPECT_EQ(names_of(wrapped.tensors), names_of(plain.tensors)) << prefix;
      EXPECT_EQ(wrapped.style, plain.style) << prefix;
    }
  }
}

TEST(Families, AnFfnOfTwoMatricesHasNoGate) {
  SmallModel model = small_v1();
  model.gated = false;
  const StoredTensors stored = with(model.tensors(), "layers.0.feed_forward.w1.bias", {model.ffn});
  const StoredTensors tensors = to_canonical_names(stored, "test.pth").tensors;
  EXPECT_FALSE(tensors.contains("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_FALSE(tensors.contains("model.layers.0.mlp.gate_proj.bias"));
  ASSERT_TRUE(tensors.contains("model.layers.0.mlp.up_proj.weight"));
  EXPECT_TRUE(tensors.contains("model.layers.0.mlp.up_proj.bias"));
  EXPECT_EQ(floats_of(tensors.at("model.layers.0.mlp.up_proj.weight")),
            floats_of(stored.at("layers.0.feed_forward.w1.weight")));
}

TEST(Families, FusedExpertsAreSplitAlongTheirRows) {
  constexpr std::size_t experts = 3, width = 2, hidden = 4;
  StoredTensors stored;
  stored.emplace("model.layers.1.mlp.experts.gate_up_proj", counting_tensor({experts, 2 * width, hidden}));
  stored.emplace("model.layers.1.mlp.experts.down_proj", counting_tensor({experts, hidden, width}, 1000));
  const StoredTensors tensors = to_canonical_names(stored, "test.pth").tensors;
  ASSERT_EQ(tensors.size(), 3 * experts);
  for (std::size_t expert = 0; expert < experts; ++expert) {
    const std::string prefix = "model.layers.1.mlp.experts." + std::to_string(expert) + ".";
    const float first = static_cast<float>(expert * 2 * width * hidden);
    const StoredTensor& gate = tensors.at(prefix + "gate_proj.weight");
    EXPECT_EQ(gate.shape, (Shape{width, hidden}));
    EXPECT_EQ(floats_of(gate), floats_of(counting_tensor({width, hidden}, first)));
    const StoredTensor& up = tensors.at(prefix + "up_proj.weight");
    EXPECT_EQ(up.shape, (Shape{width, hidden}));
    EXPECT_EQ(floats_of(up), floats_of(counting_tensor({width, hidden}, first + width * hidden)));
    const StoredTensor& down = tensors.at(prefix + "down_proj.weight");
    EXPECT_EQ(down.shape, (Shape{hidden, width}));
    EXPECT_EQ(floats_of(down),
              floats_of(counting_tensor({hidden, width}, 1000 + static_cast<float>(expert * hidden * width))));
  }
}

TEST(Families, FusedExpertsOfAnyOtherShapeAreRejected) {
  for (const Shape& shape :
       {Shape{3, 5, 4}, Shape{12, 4}, Shape{0, 4, 4}, Shape{3, 0, 4}, Shape{3, 4, 0}, Shape{}, Shape{3, 4, 4, 1}}) {
    StoredTensors stored;
    stored.emplace("model.layers.0.mlp.experts.gate_up_proj", counting_tensor(shape));
    const std::string error = canonical_error(stored);
    EXPECT_NE(error.find("model.layers.0.mlp.experts.gate_up_proj"), std::string::npos) << error;
    EXPECT_NE(error.find(shape_text(shape)), std::string::npos) << error;
  }
  StoredTensors stored;
  stored.emplace("model.layers.0.mlp.experts.down_proj", counting_tensor({12, 4}));
  EXPECT_NE(canonical_error(stored).find("expected [experts, hidden_size, moe_intermediate_size]"), std::string::npos);
}

TEST(Families, SavedBuffersAreSetAside) {
  StoredTensors stored = small_v1().tensors();
  const Names buffers{"mask",
                      "layers.0.attention.mask",
                      "model.freqs_cos",
                      "model.freqs_sin",
                      "model.layers.0.self_attn.rotary_emb.inv_freq",
                      "module.mask"};
  for (const std::string& name : buffers) stored.emplace(name, zeros({4, 4}));
  CanonicalTensors canonical = to_canonical_names(stored, "test.pth");
  std::sort(canonical.skipped.begin(), canonical.skipped.end());
  Names wanted = buffers;
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(canonical.skipped, wanted);
  EXPECT_EQ(names_of(canonical.tensors), canonical_names_of(small_v1().tensors()));
}

TEST(Families, ANameThatOnlyEndsLikeABufferIsKept) {
  EXPECT_EQ(canonical_names_of(with({}, "model.unmask", {2})), Names{"model.unmask"});
}

TEST(Families, TheLanguageModelOfMiniMindVAndOIsKept) {
  StoredTensors stored = SmallModel{}.tensors();
  for (const char* name :
       {"model.vision_encoder.embeddings.weight", "vision_proj.mlp.0.weight", "vision_proj.mlp.0.bias",
        "module.audio_proj.mlp.1.weight", "_orig_mod.talker.layers.0.self_attn.q_proj.weight"}) {
    stored.emplace(name, zeros({2, 2}));
  }
  const CanonicalTensors canonical = to_canonical_names(stored, "test.pth");
  EXPECT_EQ(names_of(canonical.tensors), canonical_names_of(SmallModel{}.tensors()));
  EXPECT_EQ(canonical.other_modalities,
            (std::map<std::string, std::size_t>{
                {"audio_proj", 1}, {"talker", 1}, {"vision_encoder", 1}, {"vision_proj", 2}}));
}

TEST(Families, RelativesAreRejectedNamingThem) {
  const std::vector<std::pair<std::string, std::string>> relatives{
      {"model.layers.0.linear_attn.q_proj.weight", "Linear"},
      {"model.time_embed.weight", "dLM"},
  };
  for (const auto& [tensor, relative] : relatives) {
    const std::string error = canonical_error(with(SmallModel{}.tensors(), tensor, {2, 2}));
    EXPECT_TRUE(error.starts_with("test.pth: ")) << error;
    EXPECT_NE(error.find(tensor), std::string::npos) << error;
    EXPECT_NE(error.find(relative), std::string::npos) << error;
  }
}

TEST(Families, RepeatedTensorsAreRejected) {
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  for (const char* other : {"module.model.layers.0.self_attn.q_proj.weight", "layers.0.attention.wq.weight",
                            "layers.0.self_attn.q_proj.weight"}) {
    const std::string error = canonical_error(with(SmallModel{}.tensors(), other, {8, 8}));
    EXPECT_NE(error.find("is repeated under another name"), std::string::npos) << other << ": " << error;
    EXPECT_NE(error.find(name), std::string::npos) << error;
  }
  SmallModel moe;
  moe.experts = 2;
  const std::string error =
      canonical_error(with(moe.tensors(), "model.layers.0.mlp.experts.down_proj", {2, moe.hidden, moe.ffn}));
  EXPECT_NE(error.find("model.layers.0.mlp.experts.0.down_proj.weight"), std::string::npos) << error;
}

TEST(Families, UnknownNamesAreKept) {
  EXPECT_EQ(canonical_names_of(with({}, "transformer.wte.weight", {2, 2})), Names{"transformer.wte.weight"});
}

StoredTensors stored_tensors(const GoldenCase& golden) {
  return golden.model_path.ends_with(".pth") ? read_pth(InputFile::open(golden.model_path))
                                             : read_hf_folder(golden.folder).tensors;
}

Family family_of(const GoldenCase& golden) {
  if (golden.family == "v1") return Family::v1;
  if (golden.family == "v2-early") return Family::v2_early;
  return golden.family == "v2" ? Family::v2 : Family::v3;
}

std::set<std::string> set_of_names(const StoredTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    std::string_view bare = name;
    for (const std::string_view wrapper : {"module.", "_orig_mod."}) {
      if (bare.starts_with(wrapper)) bare.remove_prefix(wrapper.size());
    }
    if (!bare.ends_with(".mask")) names.emplace(bare);
  }
  return names;
}

TEST(MinimindName, GivesBackTheNamesOfEveryReferenceCheckpoint) {
  for (const std::string& case_name : golden_names()) {
    const GoldenCase golden = load_golden(case_name);
    if (golden.family != "v1" && golden.family != "v2-early" && !golden.model_path.ends_with(".pth")) continue;
    const StoredTensors stored = stored_tensors(golden);
    const CanonicalTensors canonical = to_canonical_names(stored, "test.pth");
    const bool gated = some_network_has(canonical.tensors, ".gate_proj.weight");
    std::set<std::string> names;
    for (const auto& [name, tensor] : canonical.tensors) names.insert(minimind_name(family_of(golden), name, gated));
    EXPECT_EQ(names, set_of_names(stored)) << case_name;
  }
}

TEST(MinimindName, IsTheInverseOfTheCanonicalName) {
  SmallModel model = mixture(small_v1(), 12, 1);
  for (const SmallModel& each : {small_v1(), model, small_v2(), mixture(SmallModel{}, 4, 2)}) {
    for (const auto& [name, tensor] : to_canonical_names(each.tensors(), "test.pth").tensors) {
      for (const Family family : {Family::v1, Family::v2_early, Family::v2, Family::v3}) {
        const bool q_norm = name.find("_norm.weight") != std::string::npos;  // v1 has none
        if (q_norm && rope_layout(family) == RopeLayout::adjacent_pairs) continue;
        EXPECT_EQ(canonical_name(minimind_name(family, name)), name);
      }
    }
  }
}

TEST(MinimindName, KnowsV1sNames) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"model.embed_tokens.weight", "tok_embeddings.weight"},
      {"model.layers.11.self_attn.o_proj.weight", "layers.11.attention.wo.weight"},
      {"model.layers.0.mlp.up_proj.weight", "layers.0.feed_forward.w3.weight"},
      {"model.layers.0.mlp.gate.weight", "layers.0.feed_forward.gate.weight"},
      {"model.layers.0.mlp.experts.10.gate_proj.weight", "layers.0.feed_forward.experts.10.w1.weight"},
      {"model.layers.0.mlp.shared_experts.0.down_proj.bias", "layers.0.feed_forward.shared_experts.w2.bias"},
      {"model.layers.0.mlp.shared_experts.1.down_proj.bias", "layers.0.feed_forward.shared_experts.1.w2.bias"},
      {"model.norm.weight", "norm.weight"},
      {"lm_head.weight", "output.weight"},
  };
  for (const auto& [canonical, v1] : names) {
    EXPECT_EQ(minimind_name(Family::v1, canonical), v1);
    EXPECT_EQ(minimind_name(Family::v2_early, canonical), v1);
    EXPECT_EQ(minimind_name(Family::v2, canonical), canonical);
  }
}

TEST(MinimindName, NamesTheMatricesOfAnUngatedFfnW1AndW2) {
  EXPECT_EQ(minimind_name(Family::v1, "model.layers.0.mlp.up_proj.bias", false), "layers.0.feed_forward.w1.bias");
  EXPECT_EQ(minimind_name(Family::v1, "model.layers.0.mlp.down_proj.bias", false), "layers.0.feed_forward.w2.bias");
}

}  // namespace
}  // namespace minimind
