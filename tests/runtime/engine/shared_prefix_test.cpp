#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "runtime/engine/forward.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/support/golden.h"
#include "tests/support/golden_model.h"
#include "tests/support/tables.h"
#include "tests/support/text_alone.h"

namespace minimind {
namespace {

constexpr std::size_t family_positions = 170;  // tokens of a text
constexpr std::size_t family_size = 7;
constexpr std::size_t family_batch = 60;  // of a batch

// Each text starts like an earlier one.
std::vector<TextAlone> random_family(const Model& model, Forward& forward, KvType kv_type, std::mt19937& random) {
  const std::size_t vocab = model.config.vocab_size;
  std::vector<TextAlone> all;
  for (std::size_t i = 0; i < family_size; ++i) {
    TextAlone text{std::vector<std::int32_t>(family_positions), std::vector<float>(family_positions * vocab),
                   Context(model.config, family_positions, kv_type, {64 + random() % 80})};
    for (std::int32_t& token : text.tokens) token = static_cast<std::int32_t>(random() % vocab);
    if (i > 0) {
      const std::vector<std::int32_t>& like = all[random() % i].tokens;
      const std::size_t same = std::vector<std::size_t>{64, 100, 128, 150}[random() % 4];
      std::copy_n(like.begin(), same, text.tokens.begin());
    }
    Context alone(model.config, family_positions, kv_type);
    for (std::size_t done = 0; done < family_positions;) {
      const std::size_t count = std::min(family_batch, family_positions - done);
      forward.run(alone, std::span(text.tokens).subspan(done, count), {&text.logits[done * vocab], count, vocab});
      done += count;
    }
    all.push_back(std::move(text));
  }
  return all;
}

std::size_t common_size(const TextAlone& text, const TextAlone& other) {
  return &text == &other ? 0 : std::min(common_prefix(text.tokens, other.tokens), other.context.size());
}

// Starts a text again from what another one has of it, most often all of that.
void fork(TextAlone& text, const std::vector<TextAlone>& all, std::mt19937& random) {
  const TextAlone& from =
      *std::ranges::max_element(all, {}, [&](const TextAlone& other) { return common_size(text, other); });
  const std::size_t common = common_size(text, from);
  const std::size_t size = random() % 6 == 0 ? random() % (common + 1) : common;
  text.context = Context(from.context, size, family_positions, {size, 64 + random() % 100});
}

// Moves random texts: forward, most often by one token, or back, at times to before what they share.
std::vector<Piece> random_family_pieces(std::vector<TextAlone>& all, std::mt19937& random) {
  std::vector<Piece> pieces;
  std::size_t room = family_batch;
  const bool decode = random() % 2 == 0;
  for (TextAlone& text : all) {
    if (room == 0 || random() % 5 == 0) continue;
    const std::size_t size = text.context.size();
    if (random() % 8 == 0)
      text.context.rewind(random() % 8 == 0 ? random() % (size + 1) : size - std::min<std::size_t>(size, 5));
    if (text.context.size() == family_positions) text.context.rewind(family_positions - 1 - random() % 3);
    const std::size_t most = std::min(room, family_positions - text.context.size());
    const std::size_t count = std::min<std::size_t>(most, decode ? 1 : 1 + random() % (random() % 2 ? 5 : 40));
    pieces.push_back(
        {&text.context, std::span(text.tokens).subspan(text.context.size(), count), random() % (count + 1)});
    room -= count;
  }
  return pieces;
}

void expect_logits_of_a_family_alone(const Model& model, const kernels::Table& table, std::size_t threads,
                                     KvType kv_type, std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::size_t vocab = model.config.vocab_size;
  Forward forward(model, table, threads, family_batch, family_positions);
  std::vector<TextAlone> all = random_family(model, forward, kv_type, random);
  forward.run(all[0].context, std::span(all[0].tokens).first(family_batch), {});
  forward.run(all[0].context, std::span(all[0].tokens).subspan(family_batch, family_batch), {});
  std::size_t shared = 0;
  for (int step = 0; step < 25; ++step) {
    for (TextAlone& text : all) {
      if ((step == 0 && &text != &all[0]) || random() % 6 == 0) fork(text, all, random);
    }
    for (const TextAlone& text : all) shared += !text.context.cache().is_own(0);
    const std::vector<Piece> pieces = random_family_pieces(all, random);
    if (pieces.empty()) continue;
    const std::vector<float> expected = logits_alone(all, pieces, vocab);
    std::vector<float> logits(expected.size());
    forward.run(pieces, {logits.data(), logits.size() / vocab, vocab});
    ASSERT_EQ(logits, expected) << table.name << ", " << threads << " threads, " << name_of(kv_type) << ", seed "
                                << seed << ", step " << step;
  }
  EXPECT_GT(shared, 5u) << "the texts shared hardly anything";
}

TEST(SharedPrefix, HasTheBitsOfEachTextAlone) {
  std::uint32_t seed = 0;
  const Model model = load_golden_model(load_golden("v2-dense"), std::nullopt);
  for (const kernels::Table* table : tables()) {
    for (const std::size_t threads : {1u, 3u}) {
      for (const KvType kv_type : {KvType::f32, KvType::f16, KvType::q8_0}) {
        expect_logits_of_a_family_alone(model, *table, threads, kv_type, ++seed);
      }
    }
  }
}

TEST(SharedPrefix, HasTheBitsOfEachTextAloneInEveryModel) {
  std::uint32_t seed = 1000;
  for (const auto& [name, type] :
       {std::pair{"v3-odd", DType::f32}, {"v3-moe", DType::f16}, {"v1-moe", DType::q8_0}, {"v2-dense", DType::q4_0}}) {
    const Model model = load_golden_model(load_golden(name), type);
    for (const KvType kv_type : {KvType::f16, KvType::q8_0}) {
      expect_logits_of_a_family_alone(model, kernels::choose(), 2, kv_type, ++seed);
    }
  }
}

// Rows of texts that share all but their last positions, as when one prompt is continued many times.
TEST(SharedPrefix, ManyTextsOfOnePromptAreOneTile) {
  const Model model = load_golden_model(load_golden("v2-dense"), std::nullopt);
  const std::vector<std::int32_t> prompt(100, 3), token{1};
  Forward forward(model, kernels::choose(), 1, 128, 120);
  Context first(model.config, 120, KvType::f16, {96});
  forward.run(first, prompt, {});
  std::vector<Context> all;
  all.reserve(3);
  std::vector<Piece> pieces{{&first, token, 1}};
  for (int i = 0; i < 3; ++i) {
    all.emplace_back(first, 98, 120);
    EXPECT_EQ(all.back().cache().parts()[0].cells, first.cache().parts()[0].cells);
    pieces.push_back({&all.back(), token, 1});
  }
  Batch batch(16, 6);
  batch.assign(pieces);
  ASSERT_EQ(batch.tiles(0).size(), 1u);
  const auto parts = batch.parts_of(batch.tiles(0)[0]);
  ASSERT_EQ(parts.size(), 5u) << "what they share, and what each has alone";
  EXPECT_EQ(parts[0].rows.size(), 4u);
  EXPECT_EQ(parts[0].positions.end, 96u);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(parts[i].rows.size(), 1u);
    EXPECT_EQ(parts[i].positions.begin, 96u);
  }
}

}  // namespace
}  // namespace minimind
