#include "runtime/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/prefill.h"
#include "runtime/tokenizer/files.h"
#include "tests/support/golden_engine.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

Generated run(
    GoldenEngine& engine, Context& context, const Tokens& prompt, const GenerateOptions& options,
    const Tokenizer* tokenizer = nullptr, const TextCallback& on_text = [](std::string_view) {}) {
  const std::atomic<bool> interrupted = false;
  return generate(engine.forward, context, tokenizer, prompt, options, on_text, interrupted);
}

Generated run(
    GoldenEngine& engine, const GenerateOptions& options, const Tokenizer* tokenizer = nullptr,
    const TextCallback& on_text = [](std::string_view) {}) {
  Context context = engine.context();
  return run(engine, context, engine.prompt(), options, tokenizer, on_text);
}

class GoldenGeneration : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(EveryCase, GoldenGeneration, testing::ValuesIn(golden_names()), test_name);

TEST_P(GoldenGeneration, GreedyTokensAreThoseOfPyTorch) {
  for (const std::size_t batch : {1u, 5u, 64u}) {
    GoldenEngine engine(GetParam(), batch);
    const Generated result = run(engine, greedy(engine.golden.greedy.size()));
    EXPECT_EQ(result.tokens, engine.golden.greedy) << "in batches of " << batch;
    EXPECT_EQ(result.finish_reason, FinishReason::length);
    EXPECT_EQ(result.text, "") << "there is no tokenizer";
  }
}

TEST(Generate, TheCasesOfTheseTestsAreAsTheyExpect) {
  Tokens tokens = load_golden(distinct_case).greedy;
  ASSERT_GE(tokens.size(), 6u);
  std::sort(tokens.begin(), tokens.end());
  EXPECT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end());
}

TEST(Generate, RanksATokenAmongAllOfEqualsTheSmallestIdFirst) {
  const std::vector<float> logits{1, 3, 3, 0};
  const std::vector<std::size_t> ranks{3, 1, 2, 4};
  for (std::int32_t token = 0; token < 4; ++token) {
    EXPECT_EQ(score_token(logits, token, 1).rank, ranks[static_cast<std::size_t>(token)]) << token;
  }
}

TEST(Generate, StopsAfterMaxTokens) {
  GoldenEngine engine(distinct_case);
  for (const std::size_t count : {0u, 1u, 3u}) {
    const Generated result = run(engine, greedy(count));
    EXPECT_EQ(result.tokens,
              Tokens(engine.golden.greedy.begin(), engine.golden.greedy.begin() + std::ssize(result.tokens)));
    EXPECT_EQ(result.tokens.size(), count);
    EXPECT_EQ(result.finish_reason, FinishReason::length);
  }
}

TEST(Generate, StopsAtAnyEndTokenAndKeepsItAmongTheTokens) {
  GoldenEngine engine(distinct_case);
  GenerateOptions options = greedy(8);
  options.end_tokens = {engine.golden.greedy[5], engine.golden.greedy[2]};
  const Generated result = run(engine, options);
  EXPECT_EQ(result.tokens, Tokens(engine.golden.greedy.begin(), engine.golden.greedy.begin() + 3));
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
}

TEST(Generate, AnEndTokenThatIsTheLastOneAllowedIsAStop) {
  GoldenEngine engine(distinct_case);
  GenerateOptions options = greedy(3);
  options.end_tokens = {engine.golden.greedy[2]};
  EXPECT_EQ(run(engine, options).finish_reason, FinishReason::stop);
}

TEST(Generate, AnEndTokenIsNotText) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a", "b", "c"}));
  GenerateOptions options = greedy(8);
  options.end_tokens = {engine.golden.greedy[2]};
  EXPECT_EQ(run(engine, options, &tokenizer).text, "ab");
}

TEST(Generate, SpecialTokensAreNotText) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer =
      tokenizer_of(texts_of(engine.golden, {"a", "<|im_end|>", "c"}), {engine.golden.greedy[1]});
  EXPECT_EQ(run(engine, greedy(3), &tokenizer).text, "ac");
}

TEST(Generate, ShowsTextAsSoonAsItIsCertainAndInWholeCharacters) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer =
      tokenizer_of(texts_of(engine.golden, {"a\xE4", "\xBD", "\xA0", "b", "\xE5\xA5", "\xBD!"}));
  std::vector<std::string> pieces;
  const Generated result =
      run(engine, greedy(6), &tokenizer, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_EQ(pieces, (std::vector<std::string>{"a", "你", "b", "好!"}));
  EXPECT_EQ(result.text, "a你b好!");
}

TEST(Generate, ACharacterThatIsNeverFinishedIsAReplacementCharacter) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a", "\xE4\xBD"}));
  EXPECT_EQ(run(engine, greedy(2), &tokenizer).text, "a\uFFFD");
}

TEST(Generate, StopStringsAreFoundAcrossTokensAndAreNotShown) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"one E", "N", "D two", "three"}));
  GenerateOptions options = greedy(8);
  options.stop = {"nothing", "END"};
  std::string shown;
  const Generated result = run(engine, options, &tokenizer, [&](std::string_view piece) { shown += piece; });
  EXPECT_EQ(result.text, "one ");
  EXPECT_EQ(shown, "one ");
  EXPECT_EQ(result.tokens.size(), 3u) << "generation ends with the token that completes it";
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
}

TEST(Generate, AStopStringMayEndInsideACharactersToken) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a结\xE6", "\x9D\x9F了", "b"}));
  GenerateOptions options = greedy(8);
  options.stop = {"结束"};
  const Generated result = run(engine, options, &tokenizer);
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(result.tokens.size(), 2u);
}

TEST(Generate, APrefixOfAStopStringIsShownAtTheEnd) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"one ", "EN"}));
  GenerateOptions options = greedy(2);
  options.stop = {"END"};
  const Generated result = run(engine, options, &tokenizer);
  EXPECT_EQ(result.text, "one EN");
  EXPECT_EQ(result.finish_reason, FinishReason::length);
}

TEST(Generate, TheProjectsOwnTokenizerSpellsTheGoldenTokens) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = load_tokenizer(MINIMIND_SOURCE_DIR "/tests/golden_tokenizer");
  const Generated result = run(engine, greedy(8), &tokenizer);
  EXPECT_EQ(result.text, tokenizer.decode(engine.golden.greedy, true));
  ASSERT_GT(result.text.size(), 4u);
  GenerateOptions options = greedy(8);
  options.stop = {result.text.substr(1, 3)};  // one character a token
  EXPECT_EQ(run(engine, options, &tokenizer).text, result.text.substr(0, 1));
}

// The options let 7 follow, if its bias is not outweighed.
GenerateOptions repeating(std::vector<std::string> breakers) {
  GenerateOptions options = greedy(1);
  options.sampling.logit_bias = {{7, 1e4}};
  options.sampling.dry.multiplier = 1e6;
  options.sampling.dry.sequence_breakers = std::move(breakers);
  return options;
}

TEST(Generate, DryPenalisesRepetitionsOfThePrompt) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  EXPECT_EQ(run(engine, context, {1, 2, 8, 3, 1, 2}, repeating({})).tokens, Tokens{7});
  EXPECT_NE(run(engine, context, {1, 2, 7, 3, 1, 2}, repeating({})).tokens, Tokens{7});
}

TEST(Generate, DryPenalisesRepetitionsOfWhatWasGenerated) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  GenerateOptions options = repeating({});
  options.sampling.dry.allowed_length = 1;
  options.max_tokens = 2;
  const Tokens tokens = run(engine, context, {8, 3}, options).tokens;
  EXPECT_EQ(tokens, (Tokens{7, 7})) << "the first 7 has not followed a 7";
  options.max_tokens = 3;
  EXPECT_NE(run(engine, context, {8, 3}, options).tokens.back(), 7);
}

TEST(Generate, DryBreaksAtTheTextsOfTokens) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  std::vector<std::string> texts = texts_of(engine.golden, {});
  texts[2] = "a\nb";
  const Tokenizer tokenizer = tokenizer_of(texts);
  const Tokens prompt{1, 2, 7, 3, 1, 2};
  EXPECT_EQ(run(engine, context, prompt, repeating({"\n"}), &tokenizer).tokens, Tokens{7});
  EXPECT_NE(run(engine, context, prompt, repeating({"\r"}), &tokenizer).tokens, Tokens{7});
  EXPECT_THROW(run(engine, context, prompt, repeating({"\n"})), UsageError) << "without a tokenizer";
}

TEST(Generate, PromptAndTextTogetherFillTheContextAndEndByLength) {
  GoldenEngine engine(distinct_case);
  for (const std::size_t room : {0u, 1u, 3u}) {
    Context context = engine.context(engine.prompt().size() + room);
    const Generated result = run(engine, context, engine.prompt(), greedy(8));
    EXPECT_EQ(result.tokens,
              Tokens(engine.golden.greedy.begin(), engine.golden.greedy.begin() + static_cast<int>(room)));
    EXPECT_EQ(result.finish_reason, FinishReason::length);
  }
}

TEST(Generate, APromptThatDoesNotFitIsRejectedWithBothNumbers) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context(engine.prompt().size() - 1);
  const std::string error = error_of([&] { run(engine, context, engine.prompt(), greedy(1)); });
  EXPECT_NE(error.find("12 tokens long but the context holds 11"), std::string::npos) << error;
  EXPECT_NE(error.find("use a larger context"), std::string::npos) << error;
  EXPECT_EQ(context.size(), 0u);
}

TEST_P(GoldenGeneration, AReusedPromptGivesWhatAFreshOneGives) {
  for (const std::size_t batch : {1u, 5u}) {
    GoldenEngine engine(GetParam(), batch);
    const Tokens prompt = engine.prompt();
    Tokens longer = prompt;
    longer.insert(longer.end(), engine.golden.greedy.begin(), engine.golden.greedy.begin() + 3);
    Tokens other = prompt;
    other[4] = (other[4] + 1) % static_cast<std::int32_t>(engine.golden.vocab);
    GenerateOptions options = greedy(10);
    options.sampling.temperature = 2;
    options.sampling.frequency_penalty = 1;
    options.sampling.repeat_penalty = 1.5;
    Context context = engine.context();
    std::vector<std::size_t> reused;
    for (const Tokens& next : {prompt, prompt, longer, other, prompt}) {
      Context fresh = engine.context();
      const Generated wanted = run(engine, fresh, next, options);
      const Generated result = run(engine, context, next, options);
      EXPECT_EQ(result.tokens, wanted.tokens);
      EXPECT_EQ(result.prompt_tokens_reused + result.prompt_tokens_done, next.size());
      EXPECT_EQ(wanted.prompt_tokens_reused, 0u);
      reused.push_back(result.prompt_tokens_reused);
      Tokens all = next;
      all.insert(all.end(), result.tokens.begin(), result.tokens.end() - 1);
      EXPECT_EQ(Tokens(context.tokens().begin(), context.tokens().end()), all);
    }
    EXPECT_EQ(reused[0], 0u);
    EXPECT_EQ(reused[1], prompt.size() - 1) << "the logits of the last token have to be computed";
    EXPECT_GE(reused[2], prompt.size());
    EXPECT_EQ(reused[3], 4u);
    EXPECT_EQ(reused[4], 4u);
  }
}

TEST(Generate, AnEmptyPromptIsRejected) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  EXPECT_NE(error_of([&] { run(engine, context, {}, greedy(1)); }).find("prompt is empty"), std::string::npos);
}

TEST(Generate, TokensOutsideTheVocabularyAreNamed) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  for (const std::int32_t token : {-1, 96, 2147483647, -2147483647}) {
    const std::string error = error_of([&] { run(engine, context, {1, token, 99}, greedy(1)); });
    EXPECT_NE(error.find("token " + std::to_string(token) + " is not in the model's vocabulary of 96"),
              std::string::npos)
        << error;
  }
  EXPECT_EQ(context.size(), 0u);
  EXPECT_NO_THROW(check_tokens(Tokens{0, 95}, 96));
  EXPECT_NO_THROW(check_tokens(Tokens{}, 96));
}

TEST(Generate, AnInterruptionBeforeThePromptRunsLeavesNothing) {
  GoldenEngine engine(distinct_case);
  Context context = engine.context();
  const std::atomic<bool> interrupted = true;
  const Generated result = generate(
      engine.forward, context, nullptr, engine.prompt(), greedy(8), [](std::string_view) {}, interrupted);
  EXPECT_EQ(result.finish_reason, FinishReason::interrupted);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(context.size(), 0u);
}

TEST(Generate, AnInterruptionWhileDecodingKeepsWhatThereIs) {
  GoldenEngine engine(distinct_case);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {"a", "b", "c", "d"}));
  Context context = engine.context();
  std::atomic<bool> interrupted = false;
  const TextCallback interrupt_at_b = [&](std::string_view piece) { interrupted = interrupted || piece == "b"; };
  const Generated result =
      generate(engine.forward, context, &tokenizer, engine.prompt(), greedy(8), interrupt_at_b, interrupted);
  EXPECT_EQ(result.finish_reason, FinishReason::interrupted);
  EXPECT_EQ(result.text, "ab");
  EXPECT_EQ(result.tokens, Tokens(engine.golden.greedy.begin(), engine.golden.greedy.begin() + 2));
}

TEST(Generate, ASeedMakesSamplingRepeatable) {
  GoldenEngine engine(distinct_case);
  GenerateOptions options;
  options.max_tokens = 30;
  options.sampling.temperature = 2;
  options.sampling.seed = 1;
  const Tokens tokens = run(engine, options).tokens;
  EXPECT_EQ(run(engine, options).tokens, tokens);
  options.sampling.seed = 2;
  EXPECT_NE(run(engine, options).tokens, tokens);
}

TEST(Generate, PenaltiesKnowThePromptAndWhatWasGenerated) {
  GoldenEngine engine(distinct_case);
  GenerateOptions options = greedy(40);
  options.sampling.frequency_penalty = 1e6;
  const Tokens generated = run(engine, options).tokens;
  for (const std::int32_t token : generated)
    EXPECT_EQ(std::count(generated.begin(), generated.end(), token), 1) << token;
  options.sampling.frequency_penalty = 0;
  options.sampling.repeat_penalty = 1e6;
  const Tokens prompt = engine.prompt();
  const Tokens others = run(engine, options).tokens;
  EXPECT_EQ(std::find(prompt.begin(), prompt.end(), others.front()), prompt.end());
}

TEST(Prefill, WritesTheLogitsOfTheLastToken) {
  for (const std::size_t batch : {1u, 5u, 12u, 64u}) {
    GoldenEngine engine(distinct_case, batch);
    Context context = engine.context();
    std::vector<float> logits(engine.golden.vocab);
    prefill(engine.forward, context, engine.prompt(), logits);
    EXPECT_EQ(context.size(), engine.prompt().size());
    const float* wanted = engine.golden.logits.data() + (engine.prompt().size() - 1) * engine.golden.vocab;
    // 2e-4 is the allowed max difference from PyTorch.
    for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], wanted[i], 2e-4f) << batch;
  }
}

}  // namespace
}  // namespace minimind
