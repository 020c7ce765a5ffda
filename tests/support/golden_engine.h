#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/load_model.h"
#include "runtime/generate/generate.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/golden.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

using Tokens = std::vector<std::int32_t>;

// A loaded golden model.
struct GoldenEngine {
  explicit GoldenEngine(const std::string& name, std::size_t max_tokens = 8)
      : GoldenEngine(load_golden(name), max_tokens) {}
  GoldenEngine(const GoldenCase& golden_case, std::size_t max_tokens)
      : golden(golden_case),
        model(load_model(open(golden_case), std::nullopt, 1)),
        forward(model, kernels::choose(), 1, max_tokens, capacity) {}

  static constexpr std::size_t capacity = 64;

  static Checkpoint open(const GoldenCase& golden) {
    OpenOptions options;
    if (golden.yarn) options.overrides.yarn = true;
    if (golden.lora_path) options.loras.push_back({*golden.lora_path, 1});
    return open_checkpoint(golden.model_path, options);
  }

  Tokens prompt() const { return {golden.tokens.begin(), golden.tokens.end() - std::ssize(golden.greedy)}; }
  Context context(std::size_t positions = capacity) const { return Context(model.config, positions); }

  GoldenCase golden;
  Model model;
  Forward forward;
};

inline GenerateOptions greedy(std::size_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.sampling.temperature = 0;
  return options;
}

// Returns a tokenizer whose token N is bytes[N].
inline Tokenizer tokenizer_of(const std::vector<std::string>& bytes, const std::vector<std::int32_t>& special = {}) {
  TokenizerData data;
  data.source = "test.json";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    data.vocab.emplace_back(to_byte_level(bytes[i]), id);
    if (std::find(special.begin(), special.end(), id) == special.end()) continue;
    AddedToken token;
    token.id = id;
    token.content = bytes[i];
    token.special = true;
    data.added_tokens.push_back(token);
  }
  return Tokenizer(data);
}

// Returns a text for every token of the model: `words` for the tokens that it will generate, in that order, "[N]" for
// the rest.
inline std::vector<std::string> texts_of(const GoldenCase& golden, const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < golden.vocab; ++i) texts.push_back("[" + std::to_string(i) + "]");
  for (std::size_t i = 0; i < words.size(); ++i) texts[static_cast<std::size_t>(golden.greedy[i])] = words[i];
  return texts;
}

// Its first eight greedy tokens are all different.
inline constexpr const char* distinct_case = "v3-dense";

}  // namespace minimind
