#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/constraint/grammar_constraint.h"
#include "runtime/engine/prefill.h"
#include "runtime/generate/speculate.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/files.h"
#include "tests/support/cases.h"
#include "tests/support/golden_engine.h"

namespace minimind {
namespace {

DraftModel draft_model(const Model& model, std::size_t capacity) {
  return DraftModel(Forward(model, kernels::choose(), 1, 16, capacity), Context(model.config, capacity));
}

constexpr std::size_t most_drafted = 7;

// Drafts a given continuation, but often fewer tokens than requested, and often with a wrong token.
class UnreliableDrafter final : public Drafter {
 public:
  UnreliableDrafter(Tokens prompt, const Tokens& continuation, std::size_t vocab_size)
      : text_(std::move(prompt)), vocab_size_(static_cast<std::int32_t>(vocab_size)) {
    text_.insert(text_.end(), continuation.begin(), continuation.end());
  }

  std::span<const std::int32_t> draft(std::span<const std::int32_t> tokens, std::size_t most,
                                      const std::atomic<bool>&) override {
    const std::size_t first = std::min(tokens.size(), text_.size());
    const std::size_t count = std::min(random_() % (most + 1), text_.size() - first);
    drafts_.assign(text_.begin() + static_cast<std::ptrdiff_t>(first),
                   text_.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (count > 0 && random_() % 2 == 0) {
      std::int32_t& wrong = drafts_[random_() % count];
      wrong = (wrong + 1) % vocab_size_;
    }
    return drafts_;
  }

 private:
  Tokens text_, drafts_;
  std::int32_t vocab_size_;
  std::mt19937 random_{1};
};

// A model, its text, and the tokens generated after it with and without drafts.
class Comparison {
 public:
  Comparison(const Model& model, const Tokenizer* tokenizer, Tokens prompt, std::size_t capacity)
      : model_(model),
        tokenizer_(tokenizer),
        prompt_(std::move(prompt)),
        capacity_(capacity),
        forward_(model, kernels::choose(), 1, most_drafted + 1, capacity) {}

  struct Run {
    Generated generated;
    Tokens context;
    std::vector<std::string> pieces;
  };

  Run run(GenerateOptions options, Drafter* drafter, std::size_t draft_tokens) {
    options.drafter = drafter;
    options.draft_tokens = draft_tokens;
    Context context(model_.config, capacity_);
    Run run;
    const std::atomic<bool> interrupted = false;
    run.generated = generate(
        forward_, context, tokenizer_, prompt_, options,
        [&](std::string_view piece) { run.pieces.emplace_back(piece); }, interrupted);
    run.context.assign(context.tokens().begin(), context.tokens().end());
    return run;
  }

  // That any drafter leaves everything as it is. Adds up what they drafted.
  void expect_the_same(const GenerateOptions& options) {
    const Run plain = run(options, nullptr, 0);
    EXPECT_EQ(plain.generated.drafted, 0u);
    for (const std::size_t draft_tokens : {std::size_t{2}, most_drafted}) {
      UnreliableDrafter unreliable(prompt_, plain.generated.tokens, model_.config.vocab_size);
      PromptLookup lookup;
      DraftModel itself = draft_model(model_, capacity_);
      for (Drafter* drafter :
           {static_cast<Drafter*>(&unreliable), static_cast<Drafter*>(&lookup), static_cast<Drafter*>(&itself)}) {
        const Run ahead = run(options, drafter, draft_tokens);
        EXPECT_EQ(ahead.generated.tokens, plain.generated.tokens);
        EXPECT_EQ(ahead.generated.text, plain.generated.text);
        EXPECT_EQ(ahead.generated.finish_reason, plain.generated.finish_reason);
        EXPECT_EQ(ahead.generated.conforms, plain.generated.conforms);
        EXPECT_EQ(ahead.pieces, plain.pieces);
        EXPECT_EQ(ahead.context, plain.context);
        EXPECT_LE(ahead.generated.accepted, ahead.generated.drafted);
        accepted += ahead.generated.accepted;
        rejected += ahead.generated.drafted - ahead.generated.accepted;
      }
    }
  }

  // The same with every kind of drawing.
  void expect_the_same_however_drawn(GenerateOptions options) {
    constexpr std::array<double, 4> temperatures{0.85, 0, 0.85, 2};
    for (unsigned i = 0; i < cases(temperatures.size()); ++i) {
      options.sampling.temperature = temperatures[i];
      options.sampling.seed = i;
      expect_the_same(options);
    }
  }

  std::size_t accepted = 0, rejected = 0;

 private:
  const Model& model_;
  const Tokenizer* tokenizer_;
  Tokens prompt_;
  std::size_t capacity_;
  Forward forward_;
};

GenerateOptions at_most(std::size_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  return options;
}

class GoldenSpeculation : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(EveryCase, GoldenSpeculation, testing::ValuesIn(golden_names()), test_name);

TEST_P(GoldenSpeculation, TheTextIsTheSameWithAnyDrafterAndSeed) {
  const GoldenEngine engine(GetParam());
  Comparison comparison(engine.model, nullptr, engine.prompt(), GoldenEngine::capacity);
  comparison.expect_the_same_however_drawn(at_most(30));
  EXPECT_GT(comparison.accepted, cases(100));
  EXPECT_GT(comparison.rejected, cases(100));
}

// The bundled model and its own tokenizer.
class DemoSpeculation : public testing::Test {
 protected:
  DemoSpeculation()
      : tokenizer_(load_tokenizer(MINIMIND_SOURCE_DIR "/weights/demo")),
        model_(load_model(open_checkpoint(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", {}), std::nullopt, 1)) {}

  void expect_the_same(const GenerateOptions& options, std::size_t capacity = 200) {
    Comparison comparison(model_, &tokenizer_, prompt_, capacity);
    comparison.expect_the_same_however_drawn(options);
    EXPECT_GT(comparison.accepted, 0u);
    EXPECT_GT(comparison.rejected, 0u);
  }

  Tokenizer tokenizer_;
  Model model_;
  Tokens prompt_ = tokenizer_.encode("五言绝句《山居》\n空山新雨后，天气晚来秋。\n空山新雨");
};

TEST_F(DemoSpeculation, ItsPoemsAreTheSame) {
  expect_the_same(at_most(cases(60, 2)));
  GenerateOptions options = at_most(cases(60, 2));
  options.end_tokens = {*tokenizer_.eos_id()};
  expect_the_same(options);
}

TEST_F(DemoSpeculation, PenaltiesAndBiasesCountEveryToken) {
  GenerateOptions options = at_most(cases(40, 2));
  options.sampling.repeat_penalty = 1.3;
  options.sampling.presence_penalty = 0.5;
  options.sampling.frequency_penalty = 0.7;
  options.sampling.typical_p = 0.9;
  options.sampling.min_p = 0.02;
  options.sampling.logit_bias = {{5, -INFINITY}, {tokenizer_.encode("山").front(), 2}};
  expect_the_same(options);
}

TEST_F(DemoSpeculation, DryKnowsWhatWasSaid) {
  GenerateOptions options = at_most(cases(40, 2));
  options.sampling.dry.multiplier = 0.8;
  options.sampling.dry.allowed_length = 1;
  expect_the_same(options);
}

TEST_F(DemoSpeculation, AGrammarIsKeptTo) {
  for (const char* grammar : {"root ::= ([一-龥]{5} [，。]){6}", "root ::= .*", "root ::= \"空山\" [^人]*"}) {
    GenerateOptions options = at_most(cases(40, 2));
    options.end_tokens = {*tokenizer_.eos_id()};
    options.constraint = constrain_to(std::make_shared<const Grammar>(parse_grammar(grammar, "g")));
    expect_the_same(options);
  }
}

TEST_F(DemoSpeculation, StopStringsEndAtTheSameToken) {
  GenerateOptions options = at_most(cases(60, 2));
  options.stop = {"。\n", "，秋"};
  expect_the_same(options);
}

TEST_F(DemoSpeculation, EveryLimitOfTokensAndContextIsKept) {
  Comparison roomy(model_, &tokenizer_, prompt_, 200);
  for (std::size_t count = 0; count < cases(12); ++count) {
    roomy.expect_the_same(at_most(count));
    Comparison tight(model_, &tokenizer_, prompt_, prompt_.size() + count);
    tight.expect_the_same(at_most(50));
  }
}

// Remembers the requested numbers and drafts the token 0.
class AskedDrafter final : public Drafter {
 public:
  std::span<const std::int32_t> draft(std::span<const std::int32_t>, std::size_t most,
                                      const std::atomic<bool>&) override {
    asked.push_back(most);
    drafts_.assign(most, 0);
    return drafts_;
  }
  std::vector<std::size_t> asked;

 private:
  Tokens drafts_;
};

TEST(Speculation, NothingIsDraftedThatCouldNotBeTaken) {
  const GoldenEngine engine(distinct_case);
  Comparison comparison(engine.model, nullptr, engine.prompt(), GoldenEngine::capacity);
  ASSERT_EQ(std::count(engine.golden.greedy.begin(), engine.golden.greedy.begin() + 5, 0), 0);
  AskedDrafter drafter;
  comparison.run(greedy(5), &drafter, 3);
  EXPECT_EQ(drafter.asked, (std::vector<std::size_t>{3, 2, 1})) << "the fifth token comes after the fourth";
}

TEST(Speculation, AModelAgreesWithItself) {
  const GoldenEngine engine(distinct_case);
  Comparison comparison(engine.model, nullptr, engine.prompt(), GoldenEngine::capacity);
  DraftModel itself = draft_model(engine.model, GoldenEngine::capacity);
  const Generated result = comparison.run(greedy(11), &itself, 4).generated;
  EXPECT_EQ(result.tokens.size(), 11u);
  EXPECT_EQ(result.drafted, 8u) << "1 from the prompt, then 4 + 1 twice";
  EXPECT_EQ(result.accepted, 8u);
}

TEST(Speculation, InterruptsEndAtTheSameToken) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a", "b", "c", "d"}));
  DraftModel itself = draft_model(engine.model, GoldenEngine::capacity);
  GenerateOptions options = greedy(8);
  options.drafter = &itself;
  options.draft_tokens = 5;
  Context context = engine.context();
  std::atomic<bool> interrupted = false;
  const Generated result = generate(
      engine.forward, context, &tokenizer, engine.prompt(), options,
      [&](std::string_view piece) { interrupted = interrupted || piece == "c"; }, interrupted);
  EXPECT_EQ(result.finish_reason, FinishReason::interrupted);
  EXPECT_EQ(result.text, "abc");
  Tokens all = engine.prompt();
  all.insert(all.end(), result.tokens.begin(), result.tokens.end());
  EXPECT_EQ(Tokens(context.tokens().begin(), context.tokens().end()), all);
}

TEST(Speculation, AnErrorInTheMiddleLeavesAContextThatCanBeUsed) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a", "b", "c", "d"}));
  DraftModel itself = draft_model(engine.model, GoldenEngine::capacity);
  GenerateOptions options = greedy(8);
  options.drafter = &itself;
  options.draft_tokens = 5;
  Context context = engine.context();
  const std::atomic<bool> interrupted = false;
  const auto fail_at_c = [](std::string_view piece) {
    if (piece == "c") throw std::runtime_error("the screen is gone");
  };
  EXPECT_THROW(generate(engine.forward, context, &tokenizer, engine.prompt(), options, fail_at_c, interrupted),
               std::runtime_error);
  const Generated again = generate(
      engine.forward, context, &tokenizer, engine.prompt(), options, [](std::string_view) {}, interrupted);
  EXPECT_EQ(again.tokens, Tokens(engine.golden.greedy.begin(), engine.golden.greedy.begin() + 8));
  EXPECT_EQ(again.prompt_tokens_reused, engine.prompt().size() - 1);
}

// How often tokens come one after another with drafts, against what the logits say.
class SpeculatedDistribution : public testing::Test {
 protected:
  static constexpr std::size_t top_k = 4;
  static constexpr double temperature = 2;

  struct Choice {
    std::int32_t token;
    double probability;
  };

  // What may follow the tokens: softmax(logits / temperature) over the top_k largest.
  std::vector<Choice> choices_after(const Tokens& tokens) {
    std::vector<float> logits(engine_.golden.vocab);
    Context context = engine_.context();
    prefill(engine_.forward, context, tokens, logits);
    std::vector<Choice> choices;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      choices.push_back({static_cast<std::int32_t>(i), std::exp(static_cast<double>(logits[i]) / temperature)});
    }
    std::sort(choices.begin(), choices.end(),
              [](const Choice& a, const Choice& b) { return a.probability > b.probability; });
    choices.resize(top_k);
    double sum = 0;
    for (const Choice& choice : choices) sum += choice.probability;
    for (Choice& choice : choices) choice.probability /= sum;
    return choices;
  }

  GoldenEngine engine_{distinct_case};
};

// Pearson's statistic is below this for 999 of 1000 sets of seeds (Wilson and Hilferty 1931; 3.09 is the normal
// distribution's quantile).
double chi_square_limit(double degrees) {
  const double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + 3.09 * std::sqrt(spread), 3);
}

TEST_F(SpeculatedDistribution, OfTokensDrawnWithDraftsIsThatOfTheLogits) {
  constexpr int seeds = 4000;
  GenerateOptions options = at_most(3);
  options.sampling.temperature = temperature;
  options.sampling.top_k = top_k;
  options.sampling.top_p = 1;
  Comparison comparison(engine_.model, nullptr, engine_.prompt(), GoldenEngine::capacity);
  DraftModel itself = draft_model(engine_.model, GoldenEngine::capacity);
  std::map<Tokens, int> counts;
  std::size_t drafted = 0, accepted = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    options.sampling.seed = static_cast<std::uint64_t>(seed);
    const Generated result = comparison.run(options, &itself, 1).generated;
    ++counts[result.tokens];
    drafted += result.drafted;
    accepted += result.accepted;
  }
  EXPECT_GT(accepted, drafted / 5) << "both ways of drawing the third token have to be tried";
  EXPECT_LT(accepted, drafted * 4 / 5);

  double statistic = 0;
  int counted = 0, cells = 0;
  const auto add_cell = [&](const Tokens& drawn, double probability) {
    const double expected = probability * seeds;
    statistic += (counts[drawn] - expected) * (counts[drawn] - expected) / expected;
    counted += counts[drawn];
    ++cells;
  };
  for (const Choice& first : choices_after(engine_.prompt())) {
    Tokens text = engine_.prompt();
    text.push_back(first.token);
    for (const Choice& second : choices_after(text)) {
      text.push_back(second.token);
      for (const Choice& third : choices_after(text)) {
        add_cell({first.token, second.token, third.token}, first.probability * second.probability * third.probability);
      }
      text.pop_back();
    }
  }
  EXPECT_EQ(counted, seeds) << "nothing else is drawn";
  ASSERT_EQ(cells, 64);
  EXPECT_LT(statistic, chi_square_limit(cells - 1));
}

}  // namespace
}  // namespace minimind
