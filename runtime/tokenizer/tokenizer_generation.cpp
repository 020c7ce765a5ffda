#include "runtime/tokenizer/tokenizer_generation.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace minimind {
namespace {

using Probes = std::array<std::pair<std::int32_t, std::string_view>, 8>;

// Tokens of MiniMind's vocabularies, in their files' spelling. A vocabulary trained on other texts has no such token at
// these ids.
constexpr Probes early_vocabulary{{{1500, "Ġsignific"},
                                   {2000, "æĽ´å¥½"},
                                   {3500, "æĢ§çļĦ"},
                                   {4500, "Ġfunction"},
                                   {5000, "å¼ķèµ·"},
                                   {5500, "Ġseason"},
                                   {6000, "oster"},
                                   {6399, "Ġnetworks"}}};
constexpr Probes v3_vocabulary{{{1500, "Ġmost"},
                                {2000, "ark"},
                                {3500, "Ġdevelopment"},
                                {4500, "Ġenh"},
                                {5000, "å¤ĸéĥ¨"},
                                {5500, "èĶ¬èıľ"},
                                {6000, "æīĭæ®µ"},
                                {6399, "Ġstyle"}}};

constexpr std::array<std::string_view, 3> first_special_tokens{"<unk>", "<s>", "</s>"};
constexpr std::array<std::string_view, 3> later_special_tokens{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

bool has_vocabulary(const Tokenizer& tokenizer, const Probes& probes) {
  return std::all_of(probes.begin(), probes.end(),
                     [&](const auto& probe) { return tokenizer.token_text(probe.first) == probe.second; });
}

bool begins_with(const Tokenizer& tokenizer, const std::array<std::string_view, 3>& tokens) {
  for (std::int32_t id = 0; id < std::ssize(tokens); ++id) {
    if (tokenizer.token_text(id) != tokens[static_cast<std::size_t>(id)]) return false;
  }
  return true;
}

enum class Generation { v1, v2, v3 };

std::string_view name_of(Generation generation) {
  constexpr std::string_view names[] = {"v1 and v2-early", "v2", "v3"};
  return names[static_cast<std::size_t>(generation)];
}

// Of MiniMind's own code; an export may be of several generations, and has a tokenizer next to it.
std::optional<Generation> generation_of(Family family) {
  if (family == Family::v1 || family == Family::v2_early) return Generation::v1;
  if (family == Family::v2) return Generation::v2;
  return family == Family::v3 ? std::optional(Generation::v3) : std::nullopt;
}

std::optional<Generation> known_tokenizer(const Tokenizer& tokenizer) {
  if (has_vocabulary(tokenizer, v3_vocabulary)) return Generation::v3;
  if (!has_vocabulary(tokenizer, early_vocabulary)) return std::nullopt;
  if (begins_with(tokenizer, first_special_tokens)) return Generation::v1;
  return begins_with(tokenizer, later_special_tokens) ? std::optional(Generation::v2) : std::nullopt;
}

// Exports to llama are of v1 or v2, those to qwen3 of v3.
bool may_be_of(Generation tokenizer, Family family) {
  if (const auto expected = generation_of(family)) return tokenizer == *expected;
  return (tokenizer == Generation::v3) == (family != Family::llama);
}

Fact wrong_special_tokens(const std::array<std::string_view, 3>& found, const std::array<std::string_view, 3>& expected,
                          Generation generation) {
  return Fact("the tokenizer's special tokens are {} {} {}, expected {} {} {} as in MiniMind {}", found[0], found[1],
              found[2], expected[0], expected[1], expected[2], name_of(generation));
}

}  // namespace

std::optional<Fact> tokenizer_misfit(const Tokenizer& tokenizer, const Config& config) {
  const auto expected = generation_of(config.family);
  const std::size_t found_size = tokenizer.vocab_size(), size = config.vocab_size;
  if (found_size > size || (expected && found_size != size)) {  // exports may round the vocabulary up
    return Fact("the tokenizer has {} tokens, expected the {} of the model's vocabulary", found_size, size);
  }
  if (const auto known = known_tokenizer(tokenizer)) {
    if (may_be_of(*known, config.family)) return std::nullopt;
    return Fact("the tokenizer is that of MiniMind {}, expected that of {} for a model of family {}", name_of(*known),
                name_of(expected.value_or(*known == Generation::v3 ? Generation::v2 : Generation::v3)),
                minimind::name_of(config.family));
  }
  if (!expected) return std::nullopt;
  if (*expected == Generation::v1 && begins_with(tokenizer, later_special_tokens)) {
    return wrong_special_tokens(later_special_tokens, first_special_tokens, *expected);
  }
  if (*expected != Generation::v1 && begins_with(tokenizer, first_special_tokens)) {
    return wrong_special_tokens(first_special_tokens, later_special_tokens, *expected);
  }
  return std::nullopt;
}

}  // namespace minimind
