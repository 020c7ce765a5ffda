#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/linear_time.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/written_file.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/export/gguf.h"
#include "weights/export/state_dict.h"
#include "weights/gguf/writer.h"
#include "weights/tensor/tensor_rows.h"
#include "weights/torch/pth_writer.h"

namespace minimind {
namespace {

OpenOptions options_of(const GoldenCase& golden) {
  OpenOptions options;
  if (golden.yarn) options.overrides.yarn = true;
  if (golden.lora_path) options.loras.push_back({*golden.lora_path, 1});
  return options;
}

std::string write_gguf_of(const Checkpoint& checkpoint, const WantedTypes& types, const TemporaryFolder& folder) {
  const GgufExport model = export_gguf(checkpoint, types, "test", 1);
  OutputFile file(folder.path() + "/model.gguf");
  write_gguf(file, model.metadata, model.tensors, 1);
  file.commit();
  return file.path();
}

std::string write_pth_of(const Checkpoint& checkpoint, const WantedTypes& types, const TemporaryFolder& folder) {
  const StateDictExport state = export_minimind(checkpoint, types, 1);
  OutputFile file(folder.path() + "/model.pth");
  write_pth(file, state.tensors, state.tied, 1);
  file.commit();
  return file.path();
}

void expect_same_config(const Config& actual, const Config& expected) {
  EXPECT_EQ(name_of(actual.family), name_of(expected.family));
  EXPECT_EQ(actual.vocab_size, expected.vocab_size);
  EXPECT_EQ(actual.hidden_size, expected.hidden_size);
  EXPECT_EQ(actual.num_hidden_layers, expected.num_hidden_layers);
  EXPECT_EQ(actual.num_attention_heads, expected.num_attention_heads);
  EXPECT_EQ(actual.num_key_value_heads, expected.num_key_value_heads);
  EXPECT_EQ(actual.head_dim, expected.head_dim);
  EXPECT_EQ(actual.intermediate_size, expected.intermediate_size);
  EXPECT_EQ(name_of(actual.hidden_act), name_of(expected.hidden_act));
  EXPECT_EQ(actual.max_position_embeddings, expected.max_position_embeddings);
  EXPECT_EQ(actual.rms_norm_eps, expected.rms_norm_eps);
  EXPECT_EQ(actual.rope_theta, expected.rope_theta);
  EXPECT_EQ(actual.tie_word_embeddings, expected.tie_word_embeddings);
  EXPECT_EQ(actual.num_experts, expected.num_experts);
  EXPECT_EQ(actual.num_experts_per_tok, expected.num_experts_per_tok);
  EXPECT_EQ(actual.n_shared_experts, expected.n_shared_experts);
  EXPECT_EQ(actual.moe_intermediate_size, expected.moe_intermediate_size);
  if (expected.num_experts > 0) {
    EXPECT_EQ(actual.norm_topk_prob, expected.norm_topk_prob);
  }
  ASSERT_EQ(actual.rope_scaling.has_value(), expected.rope_scaling.has_value());
  if (expected.rope_scaling) {
    EXPECT_EQ(actual.rope_scaling->factor, expected.rope_scaling->factor);
    EXPECT_EQ(actual.rope_scaling->attention_factor, expected.rope_scaling->attention_factor);
    EXPECT_EQ(actual.rope_scaling->ramp_end, expected.rope_scaling->ramp_end);
  }
}

class EveryGoldenExport : public testing::TestWithParam<std::string> {
 protected:
  EveryGoldenExport()
      : golden_(load_golden(GetParam())), checkpoint_(open_checkpoint(golden_.model_path, options_of(golden_))) {}

  GoldenCase golden_;
  Checkpoint checkpoint_;
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Export, EveryGoldenExport, testing::ValuesIn(golden_names()), test_name);

TEST_P(EveryGoldenExport, HasPyTorchsLogitsAsGguf) {
  const Checkpoint read = open_checkpoint(write_gguf_of(checkpoint_, {}, folder_), {});
  const Model model = load_model(read, std::nullopt, 1);
  Context context(model.config, golden_.tokens.size());
  Forward forward(model, kernels::choose(), 1, golden_.tokens.size(), golden_.tokens.size());
  std::vector<float> logits(golden_.logits.size());
  forward.run(context, golden_.tokens, Matrix<float>{logits.data(), golden_.tokens.size(), golden_.vocab});
  // The bound of the max absolute difference from PyTorch's float32 logits of the same weights.
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], golden_.logits[i], 2e-4f);
}

TEST_P(EveryGoldenExport, IsTheSameConfigAsGguf) {
  const Checkpoint read = open_checkpoint(write_gguf_of(checkpoint_, {}, folder_), {});
  expect_same_config(read.config, checkpoint_.config);
}

TEST_P(EveryGoldenExport, ComesBackBitForBitFromGgufToPth) {
  const Checkpoint gguf = open_checkpoint(write_gguf_of(checkpoint_, {}, folder_), {});
  OpenOptions options;  // what a .pth cannot say
  options.overrides = {.heads = checkpoint_.config.num_attention_heads,
                       .kv_heads = checkpoint_.config.num_key_value_heads,
                       .experts_per_token = {},
                       .yarn = {}};
  const std::string config_path = golden_.folder + "/config.json";
  if (std::filesystem::exists(config_path)) options = {.overrides = {}, .config_path = config_path, .loras = {}};
  const Checkpoint pth = open_checkpoint(write_pth_of(gguf, {}, folder_), options);
  expect_same(pth.tensors, checkpoint_.tensors);
}

TEST_P(EveryGoldenExport, KeepsVectorsAndRoutersAsF32) {
  const GgufExport model = export_gguf(checkpoint_, {.matrices = DType::f16, .embedding = {}}, "test", 1);
  for (const OutputTensor& tensor : model.tensors) {
    const bool vector = tensor.sources.front()->shape.size() == 1;
    const bool router = tensor.name.ends_with("ffn_gate_inp.weight");
    EXPECT_EQ(tensor.dtype, vector || router ? DType::f32 : DType::f16) << tensor.name;
  }
}

std::string architecture_of(const std::string& golden_name) {
  const GoldenCase golden = load_golden(golden_name);
  return export_gguf(open_checkpoint(golden.model_path, options_of(golden)), {}, "test", 1).architecture;
}

TEST(GgufArchitecture, IsLlamaCppsIfItComputesTheModel) {
  EXPECT_EQ(architecture_of("v1-dense"), "llama");
  EXPECT_EQ(architecture_of("v2-early-dense"), "llama");
  EXPECT_EQ(architecture_of("v2-dense"), "llama");
  EXPECT_EQ(architecture_of("hf-llama"), "llama");
  EXPECT_EQ(architecture_of("v3-dense"), "qwen3");
  EXPECT_EQ(architecture_of("v3-moe"), "qwen3moe");
  EXPECT_EQ(architecture_of("v1-moe"), "bailingmoe");
  EXPECT_EQ(architecture_of("v2-moe"), "bailingmoe");
}

TEST(GgufArchitecture, IsOurOwnIfLlamaCppHasNone) {
  for (const char* name : {"v3-glu-gelu", "v3-plain-relu", "v3-plain-gelu-bias", "v1-plain-relu"}) {
    const GoldenCase golden = load_golden(name);
    const GgufExport model = export_gguf(open_checkpoint(golden.model_path, options_of(golden)), {}, "test", 1);
    EXPECT_EQ(model.architecture, "minimind") << name;
    EXPECT_NE(model.only_ours_because.value().english().find("SwiGLU"), std::string::npos);
  }
}

TEST(GgufExport, WritesYarnAsLlamaCppReadsIt) {
  const GoldenCase golden = load_golden("v3-yarn");
  const GgufExport model = export_gguf(open_checkpoint(golden.model_path, options_of(golden)), {}, "test", 1);
  EXPECT_EQ(std::get<std::string>(model.metadata.find("qwen3.rope.scaling.type")->data), "yarn");
  EXPECT_EQ(std::get<double>(model.metadata.find("qwen3.rope.scaling.factor")->data), 16);
  EXPECT_EQ(std::get<std::uint64_t>(model.metadata.find("qwen3.rope.scaling.original_context_length")->data), 2048u);
  // llama.cpp multiplies by 1 + 0.1 ln 16 what MiniMind leaves alone.
  EXPECT_NEAR(std::get<double>(model.metadata.find("qwen3.rope.scaling.attn_factor")->data), 1 / 1.2772588722, 1e-7);
}

TEST(GgufExport, GivesTheEmbeddingASeparateType) {
  const GoldenCase golden = load_golden("v3-untied");
  OpenOptions options = options_of(golden);
  if (std::filesystem::exists(golden.folder + "/config.json")) options.config_path = golden.folder + "/config.json";
  const Checkpoint checkpoint = open_checkpoint(golden.model_path, options);
  const GgufExport model = export_gguf(checkpoint, {.matrices = DType::bf16, .embedding = DType::f32}, "test", 1);
  for (const OutputTensor& tensor : model.tensors) {
    if (tensor.name == "token_embd.weight" || tensor.name == "output.weight") {
      EXPECT_EQ(tensor.dtype, DType::f32) << tensor.name;
    } else if (tensor.name.find("ffn_up") != std::string::npos) {
      EXPECT_EQ(tensor.dtype, DType::bf16) << tensor.name;
    }
  }
}

TEST(GgufExport, NamesTheTensorThatTheTypeCannotRepresent) {
  const GoldenCase golden = load_golden("v3-odd");  // widths 36, 53 and 60
  const GgufExport model = export_gguf(open_checkpoint(golden.model_path, options_of(golden)),
                                       {.matrices = DType::q8_0, .embedding = {}}, "test", 1);
  ASSERT_FALSE(model.exceptions.empty());
  EXPECT_EQ(model.exceptions.front().english(), "token_embd.weight as f16: its 36 columns are not a multiple of 32");
}

TEST(GgufExport, DenseLayersTakeLinearTimeHoweverManyExpertsOthersHave) {
  Checkpoint checkpoint = open_checkpoint(load_golden("v3-moe").model_path, {});
  const Construct layers{"layers", [](std::size_t bytes) { return std::string(bytes, 'x'); }};
  const auto export_layers = [&](const std::string& text) {
    checkpoint.config.num_hidden_layers = checkpoint.config.num_experts = text.size();
    export_gguf(checkpoint, {}, "test", 1);
  };
  expect_linear("export_gguf", {layers}, export_layers, 500);
}

// Rows 0, 1, 2, ... of two heads of six.
TEST(MinimindExport, NamesUngatedFfnsOfV1AsItsCodeDoes) {
  const GoldenCase golden = load_golden("v1-plain-relu");
  const Checkpoint checkpoint = open_checkpoint(golden.model_path, options_of(golden));
  std::vector<std::string> names;
  for (const OutputTensor& tensor : export_minimind(checkpoint, {}, 1).tensors) names.push_back(tensor.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "layers.0.feed_forward.w1.weight"), names.end());
  EXPECT_EQ(std::find(names.begin(), names.end(), "layers.0.feed_forward.w3.weight"), names.end());
}

TEST(TensorRows, AdjacentPairsAreTheHalvesInterleaved) {
  const std::vector<std::size_t> expected{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  EXPECT_EQ(halves_to_adjacent_pairs(12, 6), expected);
}

TEST(TensorRows, HalvesUndoAdjacentPairs) {
  const auto there = halves_to_adjacent_pairs(24, 8);
  const auto back = adjacent_pairs_to_halves(24, 8);
  for (std::size_t row = 0; row < 24; ++row) EXPECT_EQ(there[back[row]], row);
}

}  // namespace
}  // namespace minimind
