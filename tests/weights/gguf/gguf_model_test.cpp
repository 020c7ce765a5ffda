#include "weights/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/gguf_bytes.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

using Tensor = GgufBytes::Tensor;

constexpr std::uint32_t u32_type = 4, f32_type = 6, string_type = 8;

// A file of small models; 3 heads of 2 and, for experts, 2 of them and `shared` ones.
GgufBytes file_of(const std::string& architecture, const std::string& family = "", std::uint32_t shared = 0) {
  GgufBytes file;
  file.key("general.architecture", string_type, gguf_text(architecture));
  const auto add = [&](const std::string& name, std::uint32_t value) {
    file.key(architecture + "." + name, u32_type, little_endian(value));
  };
  for (const char* const name : {"embedding_length", "block_count", "context_length", "feed_forward_length"}) {
    add(name, 6);
  }
  add("attention.head_count", 3);
  file.key(architecture + ".attention.layer_norm_rms_epsilon", f32_type, little_endian(1e-6f));
  if (!family.empty()) {
    file.key("minimind.family", string_type, gguf_text(family));
    add("expert_count", 2);
    add("expert_used_count", 1);
    add("expert_shared_count", shared);
  }
  return file;
}

// A tensor of f32 whose values count from 0.
Tensor counting(const std::string& name, const std::vector<std::uint64_t>& sizes) {
  std::size_t count = 1;
  for (const std::uint64_t size : sizes) count *= size;
  Tensor tensor{.name = name, .sizes = sizes, .data = ""};
  for (std::size_t i = 0; i < count; ++i) tensor.data += little_endian(static_cast<float>(i));
  return tensor;
}

GgufModel read(GgufBytes file, const Tensor& tensor) {
  return read_gguf_model(TemporaryFile(file.tensor(tensor).bytes()).open());
}

std::string error_about(GgufBytes file, const Tensor& tensor) {
  return error_of([&] { read(std::move(file), tensor); });
}

std::vector<float> values_of(const GgufModel& model, const std::string& name) {
  const auto found = model.tensors.find(name);
  return found == model.tensors.end() ? std::vector<float>() : floats_of(found->second);
}

TEST(GgufModel, TensorsHaveTheirCanonicalNames) {
  for (const auto& [name, canonical] : std::vector<std::pair<std::string, std::string>>{
           {"token_embd.weight", "model.embed_tokens.weight"},
           {"blk.11.attn_v.weight", "model.layers.11.self_attn.v_proj.weight"},
           {"blk.0.ffn_gate_inp.weight", "model.layers.0.mlp.gate.weight"},
           {"blk.0.ffn_up.bias", "model.layers.0.mlp.up_proj.bias"}}) {
    EXPECT_EQ(values_of(read(file_of("qwen3"), counting(name, {2, 2})), canonical).size(), 4u) << name;
  }
}

// They are left for the check against the model, which names them.
TEST(GgufModel, UnknownTensorsKeepTheirNames) {
  for (const std::string name :
       {"blk.", "blk.x.attn_v.weight", "blk.1", "blk.1attn_v.weight", "blk.99999999999999999999.attn_v.weight",
        "blk.-1.attn_v.weight", "blk.0.attn_v", "blk.0.ffn_gate_exps.scale", "blk.0.", "attn_v.weight"}) {
    EXPECT_EQ(values_of(read(file_of("qwen3"), counting(name, {2, 2})), name).size(), 4u) << name;
  }
}

TEST(GgufModel, TwoNamesOfOneTensorAreAnError) {
  GgufBytes file = file_of("qwen3");
  file.tensor(counting("model.norm.weight", {2}));
  EXPECT_NE(
      error_about(file, counting("output_norm.weight", {2})).find("'model.norm.weight' is repeated under another"),
      std::string::npos);
}

TEST(GgufModel, FrequenciesOfLlama3AreRejectedByName) {
  for (const std::string name : {"rope_freqs.weight", "blk.0.rope_freqs.weight"}) {
    EXPECT_NE(error_about(file_of("llama"), counting(name, {1})).find("has " + name + ", the frequencies of llama3's"),
              std::string::npos);
  }
}

// Heads of two: their rows are in the same order in both layouts, those of a head of four are not.
TEST(GgufModel, OnlyFilesOfAdjacentPairsAreReordered) {
  const Tensor rows = counting("blk.0.attn_q.weight", {1, 8});
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  GgufBytes llama = file_of("llama"), qwen = file_of("qwen3");
  for (GgufBytes* const file : {&llama, &qwen}) {
    file->key((file == &llama ? "llama" : "qwen3") + std::string(".attention.key_length"), u32_type,
              little_endian(std::uint32_t{4}));
  }
  EXPECT_EQ(values_of(read(llama, rows), name), (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(values_of(read(qwen, rows), name), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(GgufModel, RowsThatAreNotWholeHeadsAreAnError) {
  for (const auto& sizes : std::vector<std::vector<std::uint64_t>>{{2, 5}, {8}, {2, 2, 2}}) {
    EXPECT_NE(
        error_about(file_of("llama"), counting("blk.0.attn_k.weight", sizes)).find("expected rows for whole heads"),
        std::string::npos)
        << sizes.size();
  }
  GgufBytes odd = file_of("llama");
  odd.key("llama.attention.key_length", u32_type, little_endian(std::uint32_t{3}));
  EXPECT_NE(error_about(odd, counting("blk.0.attn_k.weight", {2, 6})).find("whole heads of 3, an even number"),
            std::string::npos);
  GgufBytes none = file_of("llama");
  none.key("llama.attention.key_length", u32_type, little_endian(std::uint32_t{0}));
  EXPECT_NE(error_about(none, counting("blk.0.attn_k.weight", {2, 6})).find("whole heads of 0"), std::string::npos);
}

TEST(GgufModel, AStackOfExpertsIsOneTensorForEach) {
  const GgufModel model = read(file_of("minimind", "v3"), counting("blk.0.ffn_gate_exps.weight", {2, 3, 2}));
  EXPECT_EQ(values_of(model, "model.layers.0.mlp.experts.1.gate_proj.weight"),
            (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(model.tensors.at("model.layers.0.mlp.experts.0.gate_proj.weight").shape, (Shape{3, 2}));
  const GgufModel biases = read(file_of("minimind", "v3"), counting("blk.0.ffn_up_exps.bias", {3, 2}));
  EXPECT_EQ(values_of(biases, "model.layers.0.mlp.experts.1.up_proj.bias"), (std::vector<float>{3, 4, 5}));
  const GgufModel shared = read(file_of("minimind", "v2", 2), counting("blk.0.ffn_up_shexps.weight", {1, 1, 2}));
  EXPECT_EQ(values_of(shared, "model.layers.0.mlp.shared_experts.1.up_proj.weight"), std::vector<float>{1});
}

TEST(GgufModel, AStackOfAnotherShapeIsAnError) {
  const GgufBytes file = file_of("minimind", "v3");
  EXPECT_NE(error_about(file, counting("blk.0.ffn_up_exps.weight", {3, 2})).find("expected one matrix for each expert"),
            std::string::npos);
  EXPECT_NE(error_about(file, counting("blk.0.ffn_up_exps.bias", {3, 2, 2})).find("expected one vector for each"),
            std::string::npos);
  EXPECT_NE(error_about(file, counting("blk.0.ffn_up_exps.weight", {1, 1, 3})).find("has 3 experts, expected 2 as the"),
            std::string::npos);
  EXPECT_NE(error_about(file, counting("blk.0.ffn_up_shexps.weight", {1, 1, 1})).find("has 1 experts, expected 0 as"),
            std::string::npos);
  EXPECT_NE(error_about(file_of("qwen3"), counting("blk.0.ffn_up_exps.weight", {1, 1, 1})).find("expected 0 as"),
            std::string::npos)
      << "the metadata names no experts";
}

TEST(GgufModel, ASharedNetworkIsCutIntoItsExperts) {
  const GgufBytes file = file_of("bailingmoe", "v2", 2);
  const std::string experts = "model.layers.0.mlp.shared_experts.";
  const GgufModel rows = read(file, counting("blk.0.ffn_gate_shexp.weight", {2, 4}));
  EXPECT_EQ(values_of(rows, experts + "1.gate_proj.weight"), (std::vector<float>{4, 5, 6, 7}));
  const GgufModel columns = read(file, counting("blk.0.ffn_down_shexp.weight", {4, 2}));
  EXPECT_EQ(values_of(columns, experts + "1.down_proj.weight"), (std::vector<float>{2, 3, 6, 7}));
  const GgufModel alone = read(file_of("bailingmoe", "v2", 1), counting("blk.0.ffn_up_shexp.weight", {2, 3}));
  EXPECT_EQ(values_of(alone, experts + "0.up_proj.weight").size(), 6u);
}

TEST(GgufModel, ASharedNetworkThatCannotBeCutIsAnError) {
  const std::string expected = "which is not the width of ";
  const GgufBytes file = file_of("bailingmoe", "v2", 2);
  EXPECT_NE(error_about(file, counting("blk.0.ffn_gate_shexp.weight", {2, 3})).find(expected + "2 shared"),
            std::string::npos);
  EXPECT_NE(error_about(file, counting("blk.0.ffn_gate_shexp.weight", {4})).find(expected), std::string::npos);
  EXPECT_NE(
      error_about(file_of("bailingmoe", "v2"), counting("blk.0.ffn_up_shexp.weight", {2, 4})).find(expected + "0"),
      std::string::npos);
  // Blocks of 32 values of one row belong together.
  const Tensor blocks{.name = "blk.0.ffn_down_shexp.weight", .sizes = {32, 1}, .type = 8, .data = std::string(34, 'x')};
  EXPECT_NE(error_about(file, blocks).find(expected), std::string::npos);
}

TEST(GgufModel, TheTypeOfVectorsIsOneOfHalfPrecision) {
  for (const auto& [type, value, message] : std::vector<std::tuple<std::uint32_t, std::string, std::string>>{
           {string_type, gguf_text("f16"), ""},
           {string_type, gguf_text("bf16"), ""},
           {string_type, gguf_text("f32"), "is 'f32', expected"},
           {u32_type, little_endian(1u), "is 1, expected f16"}}) {
    GgufBytes file = file_of("qwen3");
    file.key("minimind.vector_type", type, value);
    const std::string error = error_about(file, counting("output_norm.weight", {2}));
    EXPECT_EQ(error.empty(), message.empty()) << error;
    EXPECT_NE(error.find(message), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace minimind
