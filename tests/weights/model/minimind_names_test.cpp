#include "weights/model/minimind_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/stored.h"
#include "weights/huggingface/folder.h"
#include "weights/model/tensor_names.h"
#include "weights/torch/pth.h"

namespace minimind {
namespace {

StoredTensors stored_tensors(const GoldenCase& golden) {
  return golden.model_path.ends_with(".pth") ? read_pth(MappedFile::open(golden.model_path))
                                             : read_hf_folder(golden.folder).tensors;
}

Family family_of(const GoldenCase& golden) {
  if (golden.family == "v1") return Family::v1;
  if (golden.family == "v2-early") return Family::v2_early;
  return golden.family == "v2" ? Family::v2 : Family::v3;
}

std::set<std::string> names_of(const StoredTensors& tensors) {
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
    EXPECT_EQ(names, names_of(stored)) << case_name;
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

TEST(MinimindName, CallsTheTwoMatricesOfAnUngatedNetworkW1AndW2) {
  EXPECT_EQ(minimind_name(Family::v1, "model.layers.0.mlp.up_proj.bias", false), "layers.0.feed_forward.w1.bias");
  EXPECT_EQ(minimind_name(Family::v1, "model.layers.0.mlp.down_proj.bias", false), "layers.0.feed_forward.w2.bias");
}

}  // namespace
}  // namespace minimind
