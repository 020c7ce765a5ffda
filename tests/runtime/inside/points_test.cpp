#include "runtime/inside/points.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden_model.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

std::vector<std::string> names_of(const std::vector<Point>& points) {
  std::vector<std::string> names;
  for (const Point& point : points) names.push_back(point.name);
  return names;
}

std::vector<std::string> chosen_names(const Model& model, const std::vector<std::string>& patterns,
                                      const std::vector<std::size_t>& layers = {}) {
  return names_of(chosen_points(model, patterns, layers));
}

std::string complaint(const Model& model, const std::vector<std::string>& patterns,
                      const std::vector<std::size_t>& layers = {}) {
  try {
    chosen_points(model, patterns, layers);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(Points, ComeInTheOrderOfTheEquations) {
  const std::vector<std::string> expected = {"model.embed_tokens",
                                             "model.layers.0.input_layernorm",
                                             "model.layers.0.self_attn.q_proj",
                                             "model.layers.0.self_attn.k_proj",
                                             "model.layers.0.self_attn.v_proj",
                                             "model.layers.0.self_attn.q_norm",
                                             "model.layers.0.self_attn.k_norm",
                                             "model.layers.0.self_attn.q_rope",
                                             "model.layers.0.self_attn.k_rope",
                                             "model.layers.0.self_attn.scores",
                                             "model.layers.0.self_attn.weights",
                                             "model.layers.0.self_attn.o_proj.input",
                                             "model.layers.0.self_attn.o_proj",
                                             "model.layers.0.post_attention_layernorm.input",
                                             "model.layers.0.post_attention_layernorm",
                                             "model.layers.0.mlp.gate_proj",
                                             "model.layers.0.mlp.up_proj",
                                             "model.layers.0.mlp.down_proj.input",
                                             "model.layers.0.mlp.down_proj",
                                             "model.layers.0",
                                             "model.layers.1.input_layernorm"};
  const auto names = names_of(points_of(load_golden_model(load_golden("v3-dense"))));
  ASSERT_GT(names.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), names.begin()));
  EXPECT_EQ(names[names.size() - 2], "model.norm");
  EXPECT_EQ(names.back(), "lm_head");
}

TEST(Points, HaveTheNamesOfMiniMindsOwnModules) {
  const Model v1 = load_golden_model(load_golden("v1-moe"));
  for (const auto& [name, own] :
       {std::pair("model.layers.1.self_attn.q_proj", "layers.1.attention.wq"),
        std::pair("model.layers.1.self_attn.weights", "layers.1.attention.weights"),
        std::pair("model.layers.0", "layers.0"), std::pair("model.layers.0.mlp", "layers.0.feed_forward"),
        std::pair("model.layers.0.post_attention_layernorm.input", "layers.0.ffn_norm.input"),
        std::pair("model.layers.0.mlp.shared_experts.0.down_proj.input",
                  "layers.0.feed_forward.shared_experts.w2.input"),
        std::pair("lm_head", "output"), std::pair("model.norm", "norm")}) {
    EXPECT_EQ(own_name(v1.config, name), own);
    EXPECT_EQ(hugging_face_name(own), name);
  }
  for (const Point& point : points_of(v1)) {
    EXPECT_EQ(hugging_face_name(own_name(v1.config, point.name)), point.name);
    EXPECT_EQ(hugging_face_name(point.name), point.name);
  }
}

TEST(Points, AreChosenByPatternsOfEitherNameAndLayers) {
  const Model v1 = load_golden_model(load_golden("v1-dense"));
  EXPECT_EQ(chosen_names(v1, {"layers.*.attention.w?"}, {1}),
            (std::vector<std::string>{"model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.k_proj",
                                      "model.layers.1.self_attn.v_proj", "model.layers.1.self_attn.o_proj"}));
  EXPECT_EQ(chosen_names(v1, {"layers.0.mlp.gate_proj", "lm_head"}),
            (std::vector<std::string>{"model.layers.0.mlp.gate_proj", "lm_head"}));
  EXPECT_EQ(chosen_names(v1, {}), names_of(points_of(v1)));
}

TEST(Points, ThatDoNotExistAreAnsweredWithTheNearest) {
  const Model model = load_golden_model(load_golden("v3-dense"));
  EXPECT_EQ(
      complaint(model, {"model.layers.0.self_attn.q_porj"}),
      "no point of the model is 'model.layers.0.self_attn.q_porj'; did you mean model.layers.0.self_attn.q_proj?");
  EXPECT_EQ(complaint(model, {"layers.*.mpl.*"}),
            "no point of the model is 'layers.*.mpl.*'; did you mean layers.*.mlp.*?");
  EXPECT_EQ(complaint(model, {"*.experts.*"}), "no point of the model is '*.experts.*'");
  EXPECT_EQ(complaint(model, {}, {2}), "layer 2 does not exist, expected 0 to 1");
  EXPECT_EQ(complaint(model, {"lm_head"}, {0}), "no chosen point is in the chosen layers");
}

TEST(Points, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*c*", "abcbcd"));
  EXPECT_TRUE(matches("a?c", "abc"));
  EXPECT_FALSE(matches("a", "ab"));
  EXPECT_FALSE(matches("a*d", "abc"));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace
}  // namespace minimind
