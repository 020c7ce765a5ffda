#include "runtime/engine/load_model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/model.h"
#include "runtime/engine/packed_matrix.h"
#include "runtime/llm/llm.h"
#include "tests/support/facts.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

// Two layers of 256 columns. Every matrix of a layer except down_proj, which has `ffn` columns, fits any block type.
// All values are 1.
Checkpoint small_checkpoint(std::size_t ffn) {
  SmallModel model;
  model.hidden = 256;
  model.q_rows = 256;
  model.k_rows = 128;
  model.q_norm = 128;
  model.ffn = ffn;
  const TemporaryFile file(safetensors_bytes(model.tensors()));
  Checkpoint checkpoint = open_checkpoint(file.path(), {});
  for (auto& [name, tensor] : checkpoint.tensors) {
    tensor = f32_tensor(tensor.shape, std::vector<float>(size_of_shape(tensor.shape), 1.0f));
  }
  return checkpoint;
}

using Lines = std::vector<std::string>;

TEST(TypeFallbacks, IsEmptyIfEveryMatrixHasTheRequestedType) {
  const Checkpoint checkpoint = small_checkpoint(64);
  for (const WeightType type :
       std::initializer_list<WeightType>{std::nullopt, DType::f32, DType::bf16, DType::iq4_nl}) {
    EXPECT_EQ(english(load_model(checkpoint, type, 1).type_fallbacks), Lines{});
  }
}

TEST(TypeFallbacks, HasOneLinePerReason) {
  const Model model = load_model(small_checkpoint(40), DType::iq4_nl, 2);
  EXPECT_EQ(english(model.type_fallbacks),
            Lines{"kept 2 tensors (first: model.layers.0.mlp.down_proj.weight) as f16: iq4_nl requires "
                  "a multiple of 32 columns"});
  EXPECT_EQ(std::get<FeedForward>(model.layers[1].mlp).down_proj.format().type, DType::f16);
  EXPECT_EQ(model.layers[1].attention.o_proj.format().type, DType::iq4_nl);
}

// As llama.cpp's quantiser: blocks of 32 values with about as many bits.
TEST(TypeFallbacks, AreShorterBlocksIf256DoNotDivideTheColumns) {
  const Model model = load_model(small_checkpoint(64), DType::q4_k, 2);
  EXPECT_EQ(english(model.type_fallbacks),
            Lines{"kept 2 tensors (first: model.layers.0.mlp.down_proj.weight) as q5_0: q4_k requires "
                  "a multiple of 256 columns"});
  EXPECT_EQ(std::get<FeedForward>(model.layers[1].mlp).down_proj.format().type, DType::q5_0);
  EXPECT_EQ(model.layers[1].attention.o_proj.format().type, DType::q4_k);
}

TEST(TypeFallbacks, NamesTheMatrixWithTooLargeValues) {
  Checkpoint checkpoint = small_checkpoint(64);
  std::vector<float> values(256 * 256, 1.0f);
  values[1234] = 65520;
  checkpoint.tensors.at("model.layers.1.self_attn.q_proj.weight") = f32_tensor({256, 256}, values);
  const Model model = load_model(checkpoint, DType::f16, 1);
  EXPECT_EQ(english(model.type_fallbacks),
            Lines{"kept model.layers.1.self_attn.q_proj.weight as f32: values too large for f16, or "
                  "not finite"});
  std::vector<float> row(256);
  read_row(model.layers[1].attention.q_proj, 4, row.data());
  EXPECT_EQ(row[1234 - 4 * 256], 65520.0f);
}

TEST(TypeFallbacks, NamesBlockTypesWithoutAKernel) {
  Checkpoint checkpoint = small_checkpoint(64);
  for (const std::string layer : {"0", "1"}) {
    StoredTensor& tensor = checkpoint.tensors.at("model.layers." + layer + ".self_attn.o_proj.weight");
    tensor = make_tensor(DType::iq3_s, {256, 256}, std::string(256 * 110, '\1'));
  }
  EXPECT_EQ(
      english(load_model(checkpoint, std::nullopt, 1).type_fallbacks),
      Lines{"kept 2 tensors (first: model.layers.0.self_attn.o_proj.weight) as f32: exact, but larger than iq3_s; "
            "q8_0 or iq4_nl is smaller"});
  EXPECT_EQ(english(load_model(checkpoint, DType::q8_0, 1).type_fallbacks), Lines{});
}

std::string refusal_of_bf16(const Checkpoint& checkpoint, WeightType type) {
  try {
    load_model(checkpoint, type, 1, Compute::bf16);
  } catch (const UsageError& error) {
    EXPECT_EQ(error.setting(), Setting::arithmetic);
    return error.what();
  }
  return "";
}

TEST(ComputeBf16, NamesTheFirstMatrixThatIsNeitherF16NorBf16) {
  Checkpoint checkpoint = small_checkpoint(64);
  EXPECT_NE(
      refusal_of_bf16(checkpoint, std::nullopt).find("model.embed_tokens.weight is kept as f32, expected f16 or bf16"),
      std::string::npos);
  EXPECT_NE(refusal_of_bf16(checkpoint, DType::q8_0).find("is kept as q8_0"), std::string::npos);
  EXPECT_EQ(refusal_of_bf16(checkpoint, DType::f16), "");
  EXPECT_EQ(refusal_of_bf16(checkpoint, DType::bf16), "");
  std::vector<float> values(256 * 256, 1.0f);
  values[1234] = 65520;
  checkpoint.tensors.at("model.layers.1.self_attn.q_proj.weight") = f32_tensor({256, 256}, values);
  EXPECT_NE(refusal_of_bf16(checkpoint, DType::f16).find("model.layers.1.self_attn.q_proj.weight is kept as f32"),
            std::string::npos);
  EXPECT_EQ(refusal_of_bf16(checkpoint, DType::bf16), "");
}

TEST(Model, NormsAndRoutersOfBlockTypesAreReadAsFloats) {
  SmallModel small = mixture(SmallModel{}, 2, 0);
  small.hidden = 32;
  small.q_rows = 32;
  small.k_rows = 16;
  small.q_norm = 16;
  const TemporaryFile file(safetensors_bytes(small.tensors()));
  Checkpoint checkpoint = open_checkpoint(file.path(), {});
  const std::string ones = std::string("\x00\x3C", 2) + std::string(32, '\1');  // q8_0: scale 1
  checkpoint.tensors.at("model.norm.weight") = make_tensor(DType::q8_0, {32}, ones);
  checkpoint.tensors.at("model.layers.0.mlp.gate.weight") = make_tensor(DType::q8_0, {2, 32}, ones + ones);
  Model model = load_model(checkpoint, std::nullopt, 1);
  EXPECT_EQ(model.norm, std::vector<float>(32, 1.0f));
  const WeightMatrix router(std::move(std::get<MixtureOfExperts>(model.layers[0].mlp).router));
  std::vector<float> row(32);
  read_row(router, 1, row.data());
  EXPECT_EQ(row, std::vector<float>(32, 1.0f));
}

std::vector<float> first_embedding(const Model& model) {
  std::vector<float> row(model.config.hidden_size);
  read_row(model.embed_tokens, 0, row.data());
  return row;
}

TEST(LoadReplacement, WritesToTheMemoryOfTheRunningModelOnlyIfItSucceeds) {
  const Checkpoint checkpoint = small_checkpoint(64);
  HugePageArena memory;
  const Model running = load_model(checkpoint, std::nullopt, 2, Compute::f32, &memory);
  const std::vector<float> before = first_embedding(running);
  Checkpoint next = small_checkpoint(64);
  StoredTensor& embeddings = next.tensors.at("model.embed_tokens.weight");
  embeddings = f32_tensor(embeddings.shape, std::vector<float>(size_of_shape(embeddings.shape), 2.0f));

  Checkpoint incomplete = next;
  incomplete.tensors.erase("model.layers.1.mlp.down_proj.weight");
  HugePageArena again = memory.again();
  EXPECT_THROW(load_replacement(running.config, incomplete, std::nullopt, 2, Compute::f32, again), Error);
  EXPECT_EQ(first_embedding(running), before);

  again = memory.again();
  const Model replacement = load_replacement(running.config, next, std::nullopt, 2, Compute::f32, again);
  EXPECT_EQ(first_embedding(replacement), std::vector<float>(256, 2.0f));
  EXPECT_EQ(replacement.embed_tokens.data(), running.embed_tokens.data());
}

// Packing reads the file on several threads, none of which may end with an exception.
TEST(LoadModel, AFileThatIsTruncatedMeanwhileIsAnErrorThatNamesIt) {
  const TemporaryFile file(safetensors_bytes(SmallModel().tensors()));
  const std::string content = read_whole_file(file.path());
  for (const WeightType type : std::initializer_list<WeightType>{std::nullopt, DType::f16}) {
    for (const std::size_t left : {content.size() - 1, content.size() / 2, std::size_t{0}}) {
      file.write(content);
      const Checkpoint checkpoint = open_checkpoint(file.path(), {});
      file.write(content.substr(0, left));
      for (const std::size_t threads : {1, 4}) {
        EXPECT_EQ(error_of([&] { load_model(checkpoint, type, threads); }),
                  file.path() + ": was changed while it was read; read it again when it is complete");
      }
    }
  }
}

}  // namespace
}  // namespace minimind
