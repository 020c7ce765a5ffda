#include "runtime/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/golden.h"
#include "weights/checkpoint.h"

namespace minimind {
namespace {

// DESIGN section 4: the worst absolute difference from PyTorch's float32 logits of the same weights.
constexpr float tolerance = 2e-4f;

Model load(const GoldenCase& golden, WeightType type = WeightType::as_stored) {
  OpenOptions options;
  if (golden.yarn) options.overrides.yarn = true;
  if (golden.lora_path) options.loras.push_back({*golden.lora_path, 1});
  return load_model(open_checkpoint(golden.model_path, options), type, 1);
}

// All logits of the tokens, run in batches of at most `batch`.
std::vector<float> logits_of(const Model& model, const std::vector<std::int32_t>& tokens, std::size_t batch,
                             const kernels::Table& kernels, std::size_t threads) {
  const std::size_t vocab = model.config.vocab_size;
  KvCache cache(model.config, tokens.size());
  Forward forward(model, kernels, threads, batch, tokens.size());
  std::vector<float> logits(tokens.size() * vocab);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(batch, tokens.size() - done);
    forward.run(std::span(tokens).subspan(done, count), cache, Matrix<float>{&logits[done * vocab], count, vocab});
    done += count;
  }
  return logits;
}

std::vector<const kernels::Table*> tables() {
  const kernels::TableList list = kernels::runnable();
  return {list.tables, list.tables + list.count};
}

class EveryGoldenCase : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Forward, EveryGoldenCase, testing::ValuesIn(golden_names()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryGoldenCase, HasPyTorchsLogitsWithEveryKernelTable) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load(golden);
  for (const kernels::Table* table : tables()) {
    const std::vector<float> logits = logits_of(model, golden.tokens, golden.tokens.size(), *table, 1);
    ASSERT_EQ(logits.size(), golden.logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(logits[i], golden.logits[i], tolerance)
          << table->name << ", token " << i / golden.vocab << ", entry " << i % golden.vocab;
    }
  }
}

TEST_P(EveryGoldenCase, GivesTheSameBitsInOnePassInChunksAndTokenByToken) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load(golden);
  for (const kernels::Table* table : tables()) {
    const std::vector<float> one_pass = logits_of(model, golden.tokens, golden.tokens.size(), *table, 1);
    for (const std::size_t batch : {1u, 2u, 7u}) {
      EXPECT_EQ(logits_of(model, golden.tokens, batch, *table, 1), one_pass) << table->name << ", batches of " << batch;
    }
  }
}

TEST_P(EveryGoldenCase, GivesTheSameBitsWithAnyNumberOfThreads) {
  const GoldenCase golden = load_golden(GetParam());
  const Model model = load(golden);
  const std::vector<float> alone = logits_of(model, golden.tokens, 5, kernels::choose(), 1);
  for (const std::size_t threads : {2u, 3u, 8u}) {
    EXPECT_EQ(logits_of(model, golden.tokens, 5, kernels::choose(), threads), alone) << threads << " threads";
  }
}

// f16 weights held as f32 are the same numbers, and a product with them is the same float.
TEST(Forward, WeightsHeldAsF32GiveTheLogitsOfThoseStoredAsF16) {
  const GoldenCase golden = load_golden("v3-dense");
  const auto& table = kernels::choose();
  EXPECT_EQ(logits_of(load(golden, WeightType::f32), golden.tokens, 4, table, 1),
            logits_of(load(golden), golden.tokens, 4, table, 1));
}

double rms_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The rounding of 8 bits is 16 times finer than that of 4; all move the logits, and the finer one clearly less. The
// codes of iq4_nl suit weights better than even steps do.
TEST(Forward, BlockTypesMoveTheLogitsByTheirPrecision) {
  const GoldenCase golden = load_golden("v3-dense");
  const auto& table = kernels::choose();
  const std::vector<float> exact = logits_of(load(golden), golden.tokens, 4, table, 1);
  const double by_q8_0 = rms_difference(logits_of(load(golden, WeightType::q8_0), golden.tokens, 4, table, 1), exact);
  const double by_q4_0 = rms_difference(logits_of(load(golden, WeightType::q4_0), golden.tokens, 4, table, 1), exact);
  const double by_iq4 = rms_difference(logits_of(load(golden, WeightType::iq4_nl), golden.tokens, 4, table, 1), exact);
  EXPECT_GT(by_q8_0, 0);
  EXPECT_LT(4 * by_q8_0, by_iq4);
  EXPECT_LT(by_iq4, by_q4_0);
}

TEST(Forward, LastRowsOnlyEqualsTheLastRowsOfAll) {
  const GoldenCase golden = load_golden("v2-dense");
  const Model model = load(golden);
  const std::vector<float> all = logits_of(model, golden.tokens, golden.tokens.size(), kernels::choose(), 1);
  KvCache cache(model.config, golden.tokens.size());
  Forward forward(model, kernels::choose(), 1, golden.tokens.size(), golden.tokens.size());
  std::vector<float> last(2 * golden.vocab);
  forward.run(golden.tokens, cache, Matrix<float>{last.data(), 2, golden.vocab});
  EXPECT_TRUE(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(last.size())));
}

}  // namespace
}  // namespace minimind
