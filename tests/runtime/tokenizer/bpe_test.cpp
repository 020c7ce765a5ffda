#include "runtime/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cases.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

Ids merged(const Bpe& bpe, Ids symbols) {
  bpe.merge(symbols);
  return symbols;
}

// The definition: look for the lowest rank, leftmost, apply it, and look again.
Ids merged_by_definition(const std::vector<BpeMerge>& merges, Ids symbols) {
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best_position = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == symbols[i] && merges[rank].right == symbols[i + 1]) {
          best_rank = rank;
          best_position = i;
        }
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best_position] = merges[best_rank].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_position) + 1);
  }
}

constexpr std::int32_t token_a = 0, token_b = 1, token_c = 2;

TEST(Bpe, LeavesWordsWithoutARuleAlone) {
  const Bpe bpe({}, 3);
  EXPECT_EQ(merged(bpe, {}), Ids{});
  EXPECT_EQ(merged(bpe, {token_a}), Ids{token_a});
  EXPECT_EQ(merged(bpe, {token_a, token_b, token_a}), (Ids{token_a, token_b, token_a}));
}

TEST(Bpe, AppliesTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  const std::vector<BpeMerge> merges = {{token_b, token_c, 3}, {token_a, token_b, 4}, {token_a, token_a, 5}};
  const Bpe bpe(merges, 6);
  EXPECT_EQ(merged(bpe, {token_a, token_b, token_c}), (Ids{token_a, 3}));
  EXPECT_EQ(merged(bpe, {token_a, token_b, token_b}), (Ids{4, token_b}));
  EXPECT_EQ(merged(bpe, {token_a, token_a, token_a}), (Ids{5, token_a}));
}

TEST(Bpe, MergesWhatMergingMade) {
  const std::vector<BpeMerge> merges = {{token_a, token_b, 3}, {3, token_c, 4}, {4, 4, 5}};
  EXPECT_EQ(merged(Bpe(merges, 6), {token_a, token_b, token_c, token_a, token_b, token_c, token_a, token_b}),
            (Ids{5, 3}));
}

TEST(Bpe, ANewPairOfLowerRankPrecedesPendingPairs) {
  const std::vector<BpeMerge> merges = {{3, token_a, 4}, {token_a, token_b, 3}};
  EXPECT_EQ(merged(Bpe(merges, 5), {token_a, token_b, token_a, token_b}), (Ids{4, token_b}));
}

TEST(Bpe, OfTwoRulesForOnePairTheLaterCounts) {
  const std::vector<BpeMerge> merges = {{token_a, token_b, 3}, {token_b, token_c, 4}, {token_a, token_b, 3}};
  EXPECT_EQ(merged(Bpe(merges, 5), {token_a, token_b, token_c}), (Ids{token_a, 4}));
}

// Random vocabularies of strings over {a, b, c}, with the rules in random order and some tokens made in several ways.
TEST(Bpe, EqualsTheDefinitionOnRandomRulesAndWords) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (unsigned round = 0; round < cases(300); ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::map<std::string, std::int32_t> id_of = {{"a", token_a}, {"b", token_b}, {"c", token_c}};
    std::map<std::pair<std::int32_t, std::int32_t>, BpeMerge> rules;
    for (std::size_t i = 0; i < 40; ++i) {
      const std::size_t left = below(tokens.size()), right = below(tokens.size());
      const std::string result = tokens[left] + tokens[right];
      if (result.size() > 6) continue;
      const auto [entry, is_new] = id_of.emplace(result, static_cast<std::int32_t>(tokens.size()));
      if (is_new) tokens.push_back(result);
      const BpeMerge rule{static_cast<std::int32_t>(left), static_cast<std::int32_t>(right), entry->second};
      rules.emplace(std::pair(rule.left, rule.right), rule);
    }
    std::vector<BpeMerge> merges;
    for (const auto& [pair, rule] : rules) merges.push_back(rule);
    std::shuffle(merges.begin(), merges.end(), random);
    const Bpe bpe(merges, tokens.size());
    for (int word = 0; word < 30; ++word) {
      Ids symbols(below(40));
      for (std::int32_t& symbol : symbols) symbol = static_cast<std::int32_t>(below(3));
      ASSERT_EQ(merged(bpe, symbols), merged_by_definition(merges, symbols));
    }
  }
}

// By rescanning, this word of a million symbols would take a quarter of an hour.
TEST(Bpe, MergesAWordOfAMillionSymbols) {
  std::vector<BpeMerge> merges;
  for (std::int32_t id = 0; id < 10; ++id) merges.push_back({id, id, id + 1});
  EXPECT_EQ(merged(Bpe(merges, 11), Ids(1 << 20, token_a)), Ids(1 << 10, 10));
}

TEST(Bpe, CanBeCancelledInsideAWord) {
  const std::atomic<bool> cancelled{true};
  const Cancellation cancellation(cancelled);
  EXPECT_THROW(merged(Bpe({}, 1), Ids(100'000, token_a)), Cancelled);
  EXPECT_THROW(gpt2_word_size(std::string(100'000, 'a')), Cancelled);
}

}  // namespace
}  // namespace minimind
