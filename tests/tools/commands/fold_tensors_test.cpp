#include "tools/commands/fold_tensors.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/stored.h"

namespace minimind {
namespace {

std::vector<std::string> names(const StoredTensors& tensors) {
  std::vector<std::string> result;
  for (const FoldedTensors& fold : fold_tensors(tensors)) result.push_back(fold.name);
  return result;
}

using Names = std::vector<std::string>;

TEST(FoldTensors, JoinsLayersOfOneTypeAndShape) {
  StoredTensors tensors;
  for (const char* layer : {"0", "1", "2", "5", "10", "11"}) {
    tensors.emplace("model.layers." + std::string(layer) + ".a.weight", zeros({2}));
  }
  tensors.emplace("model.norm.weight", zeros({2}));
  EXPECT_EQ(names(tensors), (Names{"model.layers.0-2,5,10-11.a.weight", "model.norm.weight"}));
}

TEST(FoldTensors, KeepsOtherTypesAndShapesApart) {
  const StoredTensors tensors{{"model.layers.0.a.weight", zeros({2})},
                              {"model.layers.1.a.weight", zeros({3})},
                              {"model.layers.2.a.weight", zeros({2}, DType::f16)},
                              {"model.layers.3.a.bias", zeros({2})}};
  EXPECT_EQ(fold_tensors(tensors).size(), 4u);
}

TEST(FoldTensors, JoinsExpertsOfTheSameLayers) {
  StoredTensors tensors;
  for (const char* layer : {"0", "1"}) {
    for (const char* expert : {"0", "1", "2"}) {
      tensors.emplace(fmt::format("model.layers.{}.mlp.experts.{}.up_proj.weight", layer, expert), zeros({2}));
    }
    tensors.emplace(fmt::format("model.layers.{}.mlp.shared_experts.0.up_proj.weight", layer), zeros({2}));
  }
  tensors.emplace("model.layers.1.mlp.experts.3.up_proj.weight", zeros({2}));
  const Names folded = names(tensors);
  ASSERT_EQ(folded.size(), 3u);
  EXPECT_EQ(folded[0], "model.layers.0-1.mlp.experts.0-2.up_proj.weight");
  EXPECT_EQ(folded[1], "model.layers.1.mlp.experts.3.up_proj.weight");
  EXPECT_EQ(folded[2], "model.layers.0-1.mlp.shared_experts.0.up_proj.weight");
}

TEST(FoldTensors, NamesEveryTensorOfARealModelOnce) {
  const StoredTensors tensors = mixture(SmallModel{}, 3, 1).tensors();
  for (const FoldedTensors& fold : fold_tensors(tensors)) {
    EXPECT_FALSE(fold.name.find("layers.") != std::string::npos && fold.name.find("layers.0-1.") == std::string::npos)
        << fold.name;
  }
}

}  // namespace
}  // namespace minimind
