#include "runtime/engine/forward.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/engine/load_model.h"
#include "tests/support/golden.h"
#include "tests/support/golden_model.h"
#include "tests/support/random_blocks.h"
#include "tests/support/stored.h"
#include "tests/support/tables.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/tensor/block_formats.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {
namespace {

// The largest allowed difference from PyTorch's float32 logits of the same weights: about ten times the difference that
// adding in another order causes in these cases.
constexpr float tolerance = 2e-4f;

// All logits of the tokens, run in batches of at most `batch`.
std::vector<float> logits_of(const Model& model, const std::vector<std::int32_t>& tokens, std::size_t batch,
                             const kernels::Table& kernels, std::size_t threads, KvType kv_type = KvType::f32) {
  const std::size_t vocab = model.config.vocab_size;
  Context context(model.config, tokens.size(), kv_type);
  Forward forward(model, kernels, threads, batch, tokens.size());
  std::vector<float> logits(tokens.size() * vocab);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(batch, tokens.size() - done);
    forward.run(context, std::span(tokens).subspan(done, count), Matrix<float>{&logits[done * vocab], count, vocab});
    done += count;
  }
  return logits;
}

class EveryGoldenCase : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Forward, EveryGoldenCase, testing::ValuesIn(golden_names()), test_name);

TEST_P(EveryGoldenCase, HasPyTorchsLogits) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  for (const kernels::Table* table : tables()) {
    const std::vector<float> logits = logits_of(model, golden.tokens, golden.tokens.size(), *table, 1);
    ASSERT_EQ(logits.size(), golden.logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(logits[i], golden.logits[i], tolerance)
          << table->name << ", token " << i / golden.vocab << ", entry " << i % golden.vocab;
    }
  }
}

TEST_P(EveryGoldenCase, GivesTheSameBitsInAnyBatches) {
  const GoldenCase golden = load_golden(GetParam());
  for (const WeightType type : std::initializer_list<WeightType>{std::nullopt, DType::q8_0, DType::q4_0, DType::q8_r}) {
    const Model model = load_golden_model(golden, type);
    for (const KvType kv_type : {suitable_kv_type(model), KvType::q8_0}) {
      for (const kernels::Table* table : tables()) {
        const std::vector<float> one_pass = logits_of(model, golden.tokens, golden.tokens.size(), *table, 1, kv_type);
        for (const std::size_t batch : {1u, 2u, 7u}) {
          EXPECT_EQ(logits_of(model, golden.tokens, batch, *table, 1, kv_type), one_pass)
              << table->name << ", batches of " << batch << ", keys and values as " << name_of(kv_type);
        }
      }
    }
  }
}

TEST_P(EveryGoldenCase, GivesTheSameBitsWithAnyThreads) {
  const GoldenCase golden = load_golden(GetParam());
  for (const WeightType type : std::initializer_list<WeightType>{std::nullopt, DType::q8_0, DType::q8_r}) {
    const Model model = load_golden_model(golden, type);
    for (const KvType kv_type : {suitable_kv_type(model), KvType::q8_0}) {
      for (const std::size_t batch : {1u, 5u}) {
        const std::vector<float> alone = logits_of(model, golden.tokens, batch, kernels::choose(), 1, kv_type);
        for (const std::size_t threads : {2u, 3u, 8u}) {
          EXPECT_EQ(logits_of(model, golden.tokens, batch, kernels::choose(), threads, kv_type), alone)
              << threads << " threads, batches of " << batch << ", keys and values as " << name_of(kv_type);
        }
      }
    }
  }
}

// f16 weights converted to f32 have the same values, and a product with them is the same float.
TEST(Forward, F16WeightsConvertedToF32GiveTheSameLogits) {
  const GoldenCase golden = load_golden("v3-dense");
  const auto& table = kernels::choose();
  EXPECT_EQ(logits_of(load_golden_model(golden, DType::f32), golden.tokens, 4, table, 1),
            logits_of(load_golden_model(golden), golden.tokens, 4, table, 1));
}

double rms_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// A checkpoint whose matrices are stored in blocks, with the bytes of these.
struct QuantizedCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::vector<std::byte>> bytes;
};

QuantizedCheckpoint quantized(const GoldenCase& golden, DType type) {
  QuantizedCheckpoint result{open_checkpoint(golden.model_path, {}), {}};
  for (auto& [name, tensor] : result.checkpoint.tensors) {
    if (tensor.shape.size() != 2 || tensor.shape[1] % block_shape(type).elements != 0) continue;
    std::vector<float> values(tensor.shape[0] * tensor.shape[1]);
    read_floats(tensor, 0, values.size(), values.data());
    auto& bytes = result.bytes.emplace_back(byte_count(tensor.shape, type).value());
    quantize(type, values.data(), values.size(), bytes.data());
    tensor.dtype = type;
    tensor.data = StoredBytes(bytes, nullptr);
  }
  return result;
}

double spread(const std::vector<float>& logits) {
  double sum = 0, squares = 0;
  for (const float logit : logits) {
    sum += logit;
    squares += static_cast<double>(logit) * logit;
  }
  const double count = static_cast<double>(logits.size());
  return std::sqrt(squares / count - sum * sum / count / count);
}

// The bound for rounding activations to 8 bits, versus f32 arithmetic with the same weights. A block of 32 values is
// rounded in steps of max / 127, which moves each by max / 127 / sqrt(12) in the root mean square. That is 0.6% of the
// values' own, because max is 2.5 times that among 32 normal ones. The errors are independent, so that each product is
// also off by 0.6% of its size. The errors of the 7 products of each of L layers and of the output add in squares:
// 0.006 sqrt(7 L + 1) of the logits' spread, if every product moved the logits by its whole error. Three times that is
// allowed, because attention magnifies the errors of large scores. MoE models are skipped: a router may choose another
// expert if two have nearly equal scores.
TEST_P(EveryGoldenCase, BlockWeightsRoundActivationsTo8Bits) {
  const GoldenCase golden = load_golden(GetParam());
  if (golden.yarn || golden.lora_path) GTEST_SKIP() << "the same as without";
  if (load_golden_model(golden).config.num_experts > 0)
    GTEST_SKIP() << "a MoE model, whose router may choose another expert";
  for (const DType type : {DType::q8_0, DType::q4_0, DType::iq4_nl}) {
    const QuantizedCheckpoint stored = quantized(golden, type);
    const Model blocks = load_model(stored.checkpoint, std::nullopt, 1);
    const Model floats = load_model(stored.checkpoint, DType::f32, 1);
    const double bound = 3 * 0.006 * std::sqrt(7.0 * static_cast<double>(blocks.layers.size()) + 1);
    for (const kernels::Table* table : tables()) {
      const std::vector<float> exact = logits_of(floats, golden.tokens, 7, *table, 1);
      const std::vector<float> rounded = logits_of(blocks, golden.tokens, 7, *table, 1, suitable_kv_type(blocks));
      EXPECT_LT(rms_difference(rounded, exact), bound * spread(exact)) << table->name << ", " << name_of(type);
    }
  }
}

// Quantises the matrices whose names contain `part` only.
QuantizedCheckpoint partly_quantized(const GoldenCase& golden, const std::string& part) {
  QuantizedCheckpoint result = quantized(golden, DType::q8_0);
  Checkpoint whole = open_checkpoint(golden.model_path, {});
  for (auto& [name, tensor] : whole.tensors) {
    if (name.find(part) == std::string::npos) result.checkpoint.tensors.at(name) = tensor;
  }
  return result;
}

TEST(Forward, RoundsInputsIfAMatrixThatIsMultipliedRequiresIt) {
  const GoldenCase golden = load_golden("v3-untied");
  const QuantizedCheckpoint embedding = partly_quantized(golden, "embed_tokens");
  const Model looked_up = load_model(embedding.checkpoint, std::nullopt, 1);
  EXPECT_EQ(looked_up.embed_tokens.format().type, DType::q8_0);
  EXPECT_EQ(looked_up.rounding, nullptr);
  EXPECT_EQ(suitable_kv_type(looked_up), KvType::f32);
  for (const char* const part : {"lm_head", "up_proj", "q_proj"}) {
    const QuantizedCheckpoint stored = partly_quantized(golden, part);
    const Model mixed = load_model(stored.checkpoint, std::nullopt, 1);
    const Model floats = load_model(stored.checkpoint, DType::f32, 1);
    EXPECT_EQ(mixed.rounding, &to_int8_blocks) << part;
    EXPECT_EQ(suitable_kv_type(mixed), KvType::f16) << part;
    const std::vector<float> exact = logits_of(floats, golden.tokens, 7, *tables().front(), 1);
    const std::vector<float> rounded = logits_of(mixed, golden.tokens, 7, *tables().front(), 1);
    EXPECT_GT(rms_difference(rounded, exact), 0) << part;
    EXPECT_LT(rms_difference(rounded, exact), 3 * 0.006 * spread(exact)) << part;
  }
}

TEST(Forward, RunsAModelInBlocksThatReplacesOneOfFloats) {
  const GoldenCase golden = load_golden("v3-dense");
  const QuantizedCheckpoint stored = quantized(golden, DType::q8_0);
  Model model = load_golden_model(golden);
  Forward forward(model, kernels::choose(), 2, golden.tokens.size(), golden.tokens.size());
  std::vector<float> logits(golden.tokens.size() * golden.vocab);
  const Matrix<float> rows{logits.data(), golden.tokens.size(), golden.vocab};
  for (const bool replaced : {false, true}) {
    if (replaced) model = load_model(stored.checkpoint, std::nullopt, 1);
    Context context(model.config, golden.tokens.size());
    forward.run(context, golden.tokens, rows);
    EXPECT_EQ(logits, logits_of(model, golden.tokens, golden.tokens.size(), kernels::choose(), 1));
  }
}

// One scale for a row of up to 128 values, of which the largest is 3 times their root mean square, makes steps 1.2
// times as large as blocks of 32. Weights are rounded in the same way.
TEST_P(EveryGoldenCase, RowsOf8BitsRoundActivationsAndWeights) {
  const GoldenCase golden = load_golden(GetParam());
  if (golden.yarn || golden.lora_path) GTEST_SKIP() << "the same as without";
  const Checkpoint stored = open_checkpoint(golden.model_path, {});
  if (stored.config.num_experts > 0) GTEST_SKIP() << "a MoE model, whose router may choose another expert";
  const Model rows = load_model(stored, DType::q8_r, 1), floats = load_model(stored, DType::f32, 1);
  EXPECT_EQ(rows.embed_tokens.format().type, DType::q8_r);
  EXPECT_TRUE(rows.type_fallbacks.empty());
  const double bound = 3 * 0.006 * 1.2 * std::sqrt(2 * (7.0 * static_cast<double>(rows.layers.size()) + 1));
  const std::vector<float> exact = logits_of(floats, golden.tokens, 7, *tables().front(), 1);
  const std::vector<float> rounded = logits_of(rows, golden.tokens, 7, *tables().front(), 1, KvType::f32);
  EXPECT_GT(rms_difference(rounded, exact), 0);
  EXPECT_LT(rms_difference(rounded, exact), bound * spread(exact));
}

// A model of 256 columns everywhere, whose matrices have random blocks.
Checkpoint checkpoint_of_blocks(DType type) {
  SmallModel small;
  small.vocab = 64;
  small.hidden = 256;
  small.q_rows = 256;
  small.k_rows = 128;
  small.q_norm = 64;
  small.ffn = 512;
  const TemporaryFile file(safetensors_bytes(small.tensors()));
  Checkpoint checkpoint = open_checkpoint(file.path(), {});
  unsigned seed = 0;
  for (auto& [name, tensor] : checkpoint.tensors) {
    tensor = tensor.shape.size() == 2 ? random_blocks(type, tensor.shape[0], tensor.shape[1], ++seed, 0.3f)
                                      : f32_tensor(tensor.shape, std::vector<float>(size_of_shape(tensor.shape), 1.0f));
  }
  return checkpoint;
}

std::vector<std::int32_t> some_tokens(std::size_t count, std::size_t vocab) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::int32_t>(7 * i * i % vocab);
  return tokens;
}

// The same bound for the types of which parts have scales, also if their minima are larger than their values.
TEST(Forward, PartsOfBlocksRoundActivationsTo8Bits) {
  const std::vector<std::int32_t> tokens = some_tokens(19, 64);
  for (const DType type : part_types) {
    const Checkpoint stored = checkpoint_of_blocks(type);
    const Model blocks = load_model(stored, std::nullopt, 1);
    EXPECT_TRUE(blocks.type_fallbacks.empty()) << blocks.type_fallbacks.front().english();
    const Model floats = load_model(stored, DType::f32, 1);
    const double bound = 3 * 0.006 * std::sqrt(7.0 * static_cast<double>(blocks.layers.size()) + 1);
    for (const kernels::Table* table : tables()) {
      const std::vector<float> exact = logits_of(floats, tokens, 7, *table, 1);
      const std::vector<float> rounded = logits_of(blocks, tokens, 7, *table, 1, suitable_kv_type(blocks));
      EXPECT_GT(rms_difference(rounded, exact), 0) << table->name << ", " << name_of(type);
      EXPECT_LT(rms_difference(rounded, exact), bound * spread(exact)) << table->name << ", " << name_of(type);
    }
  }
}

TEST(Forward, PartsOfBlocksGiveTheSameBitsInAnyBatchesAndWithAnyThreads) {
  const std::vector<std::int32_t> tokens = some_tokens(11, 64);
  for (const DType type : part_types) {
    const Model model = load_model(checkpoint_of_blocks(type), std::nullopt, 1);
    for (const kernels::Table* table : tables()) {
      const std::vector<float> one_pass = logits_of(model, tokens, tokens.size(), *table, 1);
      for (const std::size_t batch : {1u, 2u, 7u}) {
        EXPECT_EQ(logits_of(model, tokens, batch, *table, batch), one_pass)
            << name_of(type) << ", " << table->name << ", batches of " << batch;
      }
    }
  }
}

// All tables add the same integers. Only the sums of the blocks, which are floats, are rounded differently.
TEST_P(EveryGoldenCase, TablesAgreeOnBlockWeights) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden, DType::q8_0);
  const std::vector<float> best = logits_of(model, golden.tokens, 7, kernels::choose(), 1);
  for (const kernels::Table* table : tables()) {
    // An activation that is rounded to the other side moves by a whole step.
    EXPECT_LT(rms_difference(logits_of(model, golden.tokens, 7, *table, 1), best), 0.006 * spread(best)) << table->name;
  }
}

// Keys and values lose the last 13 of 24 bits: at most 2^-12 of each value, and of the logits' spread in the root mean
// square.
TEST_P(EveryGoldenCase, F16CacheIsWithinItsRounding) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const auto& table = kernels::choose();
  const std::vector<float> exact = logits_of(model, golden.tokens, 7, table, 1);
  const double moved = rms_difference(logits_of(model, golden.tokens, 7, table, 1, KvType::f16), exact);
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 4 * 0x1p-12 * std::sqrt(2.0 * static_cast<double>(model.layers.size())) * spread(exact));
}

// Keys and values, and the queries and scores that are multiplied with them, are rounded in blocks like the activations
// above, by 0.6% of their size in the root mean square: 4 inputs of products in each layer.
TEST_P(EveryGoldenCase, Q8_0CacheIsWithinItsRounding) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  if (model.config.num_experts > 0) GTEST_SKIP() << "a MoE model, whose router may choose another expert";
  const double bound = 3 * 0.006 * std::sqrt(4.0 * static_cast<double>(model.layers.size()));
  for (const kernels::Table* table : tables()) {
    const std::vector<float> exact = logits_of(model, golden.tokens, 7, *table, 1);
    const double moved = rms_difference(logits_of(model, golden.tokens, 7, *table, 1, KvType::q8_0), exact);
    EXPECT_GT(moved, 0) << table->name;
    EXPECT_LT(moved, bound * spread(exact)) << table->name;
  }
}

// Tables round differently only values that are halfway between two steps, within the roundings of f32. All values
// after such a value may then round differently, so that results differ at most like two independent roundings.
TEST_P(EveryGoldenCase, TablesAgreeOnAQ8_0Cache) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load_golden_model(golden);
  const auto logits_with = [&](const kernels::Table& table) {
    return logits_of(model, golden.tokens, 7, table, 1, KvType::q8_0);
  };
  const std::vector<float> best = logits_with(kernels::choose());
  const double bound = std::sqrt(2.0) * 0.006 * std::sqrt(4.0 * static_cast<double>(model.layers.size()));
  for (const kernels::Table* table : tables()) {
    EXPECT_LT(rms_difference(logits_with(*table), best), bound * spread(best)) << table->name;
  }
}

// Rounding to 8 bits is 16 times finer than to 4, so it moves the logits clearly less. The codes of iq4_nl fit weights
// better than equal steps.
TEST(Forward, BlockTypesMoveTheLogitsByTheirPrecision) {
  const GoldenCase golden = load_golden("v3-dense");
  const auto& table = kernels::choose();
  const std::vector<float> exact = logits_of(load_golden_model(golden), golden.tokens, 4, table, 1);
  const double by_q8_0 =
      rms_difference(logits_of(load_golden_model(golden, DType::q8_0), golden.tokens, 4, table, 1), exact);
  const double by_q4_0 =
      rms_difference(logits_of(load_golden_model(golden, DType::q4_0), golden.tokens, 4, table, 1), exact);
  const double by_iq4 =
      rms_difference(logits_of(load_golden_model(golden, DType::iq4_nl), golden.tokens, 4, table, 1), exact);
  EXPECT_GT(by_q8_0, 0);
  EXPECT_LT(4 * by_q8_0, by_iq4);
  EXPECT_LT(by_iq4, by_q4_0);
}

// Both models have bf16 weights. bf16 has 8 bits: a rounding moves a value by at most 2^-9 of it, and by 2^-9 / sqrt(3)
// in the root mean square. The bound follows as for 8 bits above. A router may choose another expert.
TEST(Forward, ProductsOfBf16RoundActivationsTo8BitsOfMantissa) {
  for (const char* const name : {"v1-dense", "v2-moe", "v3-dense", "v3-moe", "v3-odd", "v3-plain-gelu-bias"}) {
    const GoldenCase golden = load_golden(name);
    const std::size_t tokens = golden.tokens.size();
    const Model floats = load_golden_model(golden, DType::bf16);
    const Model rounding = load_golden_model(golden, DType::bf16, Compute::bf16);
    const std::vector<float> exact = logits_of(floats, golden.tokens, tokens, kernels::choose(), 1);
    const double bound = 3 * 0x1p-9 / std::sqrt(3.0) * std::sqrt(7.0 * static_cast<double>(floats.layers.size()) + 1);
    for (const kernels::Table& table : bf16_tables()) {
      const std::vector<float> one_pass = logits_of(rounding, golden.tokens, tokens, table, 1);
      EXPECT_GT(rms_difference(one_pass, exact), 0) << name;
      if (floats.config.num_experts == 0) {
        EXPECT_LT(rms_difference(one_pass, exact), bound * spread(exact)) << name << ", " << table.bf16->name;
      }
      for (const std::size_t batch : {1u, 2u, 7u}) {
        EXPECT_EQ(logits_of(rounding, golden.tokens, batch, table, 2), one_pass) << name << ", batches of " << batch;
      }
    }
  }
}

TEST(Forward, LastRowsOnlyEqualsTheLastRowsOfAll) {
  const GoldenCase golden = load_golden("v2-dense");
  const Model model = load_golden_model(golden);
  const std::vector<float> all = logits_of(model, golden.tokens, golden.tokens.size(), kernels::choose(), 1);
  Context context(model.config, golden.tokens.size());
  Forward forward(model, kernels::choose(), 1, golden.tokens.size(), golden.tokens.size());
  std::vector<float> last(2 * golden.vocab);
  forward.run(context, golden.tokens, Matrix<float>{last.data(), 2, golden.vocab});
  EXPECT_TRUE(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(last.size())));
}

}  // namespace
}  // namespace minimind
