#include "runtime/generate/scheduler.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/generate/context_pool.h"
#include "runtime/generate/speculate.h"
#include "tests/support/golden_engine.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();
const TextCallback silent = [](std::string_view) {};

// One text to generate, with what it needs while it is under way.
struct Job {
  Tokens prompt;
  GenerateOptions options;
  PromptLookup lookup;
  std::string streamed;
  std::unique_ptr<Context> context;
  std::unique_ptr<Generation> generation;
};

Job random_job(const GoldenEngine& engine, std::mt19937& random) {
  Job job;
  const std::size_t vocab = engine.golden.vocab;
  for (std::size_t i = 1 + random() % 30; i > 0; --i) job.prompt.push_back(static_cast<std::int32_t>(random() % vocab));
  job.options.max_tokens = random() % 25;
  job.options.sampling.seed = random();
  job.options.sampling.temperature = static_cast<double>(random() % 3) / 2;
  job.options.sampling.repeat_penalty = 1 + static_cast<double>(random() % 2) / 10;
  job.options.end_tokens = {static_cast<std::int32_t>(random() % vocab)};
  if (random() % 2 == 0) job.options.stop = {"[" + std::to_string(random() % vocab) + "]"};
  return job;
}

void start(Job& job, GoldenEngine& engine, const Tokenizer& tokenizer, const std::atomic<bool>& interrupted) {
  if (job.options.max_tokens % 2 == 0) {
    job.options.drafter = &job.lookup;
    job.options.draft_tokens = 3;
  }
  job.context = std::make_unique<Context>(engine.context());
  job.generation = std::make_unique<Generation>(
      engine.model, *job.context, &tokenizer, job.prompt, job.options,
      [&job](std::string_view text) { job.streamed += text; }, interrupted);
}

void expect_the_text_alone(Job& job, GoldenEngine& engine, const Tokenizer& tokenizer) {
  const std::atomic<bool> never = false;
  const Generated together = job.generation->finish();
  Context context = engine.context();
  PromptLookup lookup;
  if (job.options.drafter) job.options.drafter = &lookup;
  const Generated alone = generate(engine.forward, context, &tokenizer, job.prompt, job.options, silent, never);
  EXPECT_EQ(together.tokens, alone.tokens);
  EXPECT_EQ(together.text, alone.text);
  EXPECT_EQ(job.streamed, alone.text);
  EXPECT_EQ(together.finish_reason, alone.finish_reason);
  EXPECT_EQ(together.prompt_tokens_done, alone.prompt_tokens_done);
}

class SchedulerOfGoldenCase : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Scheduler, SchedulerOfGoldenCase, testing::Values("v1-moe", "v2-dense", "v3-dense", "v3-moe"),
                         test_name);

TEST_P(SchedulerOfGoldenCase, GivesEachTextAsIfItWereAlone) {
  GoldenEngine engine(GetParam(), 16);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {}));
  const std::atomic<bool> never = false;
  std::mt19937 random(3);
  for (const double longest_step : {2.0, no_limit}) {
    for (const std::size_t threads : {1u, 3u}) {
      Forward forward(engine.model, kernels::choose(), threads, 16, GoldenEngine::capacity);
      Scheduler scheduler(forward, 5, longest_step);
      std::vector<std::unique_ptr<Job>> jobs;
      std::size_t ended = 0, removed = 0;
      while (ended + removed < 24) {
        if (!scheduler.full() && jobs.size() < 24 && random() % 2 == 0) {
          jobs.push_back(std::make_unique<Job>(random_job(engine, random)));
          start(*jobs.back(), engine, tokenizer, never);
          scheduler.add(*jobs.back()->generation);
        }
        for (const auto& [generation, error] : scheduler.step()) {
          ++ended;
          ASSERT_EQ(error, nullptr);
          const auto job = std::ranges::find(jobs, generation, [](const auto& of) { return of->generation.get(); });
          expect_the_text_alone(**job, engine, tokenizer);
          (*job)->generation.reset();
        }
        const auto running = std::ranges::find_if(jobs, [](const auto& job) { return job->generation != nullptr; });
        if (running == jobs.end() || random() % 20 != 0) continue;
        scheduler.remove(*(*running)->generation);
        (*running)->generation.reset();
        ++removed;
      }
      EXPECT_EQ(scheduler.texts(), 0u);
      EXPECT_GT(ended, 12u);
    }
  }
}

TEST(Scheduler, DecodesWhileALongPromptComesIn) {
  GoldenEngine engine(distinct_case, 16);
  const std::atomic<bool> never = false;
  const GenerateOptions options = greedy(40);
  Context first = engine.context(), second = engine.context();
  Generation decoded(engine.model, first, nullptr, Tokens{1}, options, silent, never);
  Generation prompted(engine.model, second, nullptr, Tokens(60, 2), options, silent, never);
  Scheduler scheduler(engine.forward, 2, 1e-9);
  scheduler.add(decoded);
  scheduler.step();
  scheduler.step();
  scheduler.add(prompted);
  std::size_t steps = 0;
  for (std::size_t size = first.size(); prompted.in_prompt(); ++steps, ++size) {
    ASSERT_EQ(first.size(), size) << "a step without a token of the text that is decoded";
    scheduler.step();
  }
  EXPECT_GE(steps, 60u / 8);
}

// Drafts as many tokens as it may.
struct EagerDrafter final : Drafter {
  std::span<const std::int32_t> draft(std::span<const std::int32_t>, std::size_t most,
                                      const std::atomic<bool>&) override {
    drafts.assign(most, 1);
    return drafts;
  }
  std::vector<std::int32_t> drafts;
};

TEST(Scheduler, DraftsOnlyWhileFewTextsAreDecoded) {
  GoldenEngine engine(distinct_case, 16);
  const std::atomic<bool> never = false;
  for (const std::size_t texts : {1u, 2u, 5u, 8u}) {
    Scheduler scheduler(engine.forward, texts, no_limit);
    std::vector<Job> jobs(texts);
    std::vector<EagerDrafter> drafters(texts);
    for (std::size_t i = 0; i < texts; ++i) {
      jobs[i].options = greedy(4);
      jobs[i].options.drafter = &drafters[i];
      jobs[i].options.draft_tokens = 3;
      jobs[i].context = std::make_unique<Context>(engine.context());
      jobs[i].generation = std::make_unique<Generation>(engine.model, *jobs[i].context, nullptr, Tokens{1},
                                                        jobs[i].options, silent, never);
      scheduler.add(*jobs[i].generation);
    }
    while (scheduler.texts() == texts) scheduler.step();
    std::size_t drafted = 0;
    for (Job& job : jobs) drafted += job.generation->finish().drafted;
    EXPECT_EQ(drafted > 0, texts <= 2) << texts << " texts";
  }
}

TEST(Scheduler, AnErrorEndsTheTextItHappensToAlone) {
  GoldenEngine engine(distinct_case, 16);
  const std::atomic<bool> never = false;
  GenerateOptions options = greedy(4), impossible = greedy(4);
  for (std::size_t token = 0; token < engine.golden.vocab; ++token) {
    impossible.sampling.logit_bias.push_back(
        {static_cast<std::int32_t>(token), -std::numeric_limits<double>::infinity()});
  }
  Context first = engine.context(), second = engine.context();
  Generation good(engine.model, first, nullptr, Tokens{1, 2}, options, silent, never);
  Generation bad(engine.model, second, nullptr, Tokens{1, 2}, impossible, silent, never);
  Scheduler scheduler(engine.forward, 2);
  scheduler.add(good);
  scheduler.add(bad);
  std::set<Generation*> ended;
  while (scheduler.texts() > 0) {
    for (const auto& [generation, error] : scheduler.step()) {
      ended.insert(generation);
      EXPECT_EQ(error != nullptr, generation == &bad);
    }
  }
  EXPECT_EQ(ended, (std::set<Generation*>{&good, &bad}));
  EXPECT_EQ(good.finish().tokens.size(), 4u);
}

class ContextPoolTest : public testing::Test {
 protected:
  ContextPoolTest() : engine_(distinct_case, 16) {}

  std::size_t bytes(std::size_t positions) const {
    return positions * KvCache::bytes_per_position(engine_.model.config, KvType::f32);
  }
  void run(Context& context, const Tokens& tokens) {
    engine_.forward.run(context, std::span(tokens).subspan(context.size()), {});
  }
  std::vector<float> logits(Context& context, const Tokens& tokens) {
    std::vector<float> logits(engine_.golden.vocab);
    engine_.forward.run(context, std::span(tokens).subspan(context.size()), {logits.data(), 1, logits.size()});
    return logits;
  }

  GoldenEngine engine_;
};

TEST_F(ContextPoolTest, StartsFromTheLongestPrefixOfAnyContext) {
  for (const KvType type : {KvType::f32, KvType::f16, KvType::q8_0}) {
    ContextPool pool(engine_.model.config, type, bytes(1000));
    const Tokens text{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, other{1, 2, 3, 4, 5, 6, 9, 9, 9};
    Context* const first = pool.acquire(text, 20);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->size(), 0u);
    run(*first, text);
    Context* const second = pool.acquire(other, 30);  // while the first is in use
    ASSERT_NE(second, first);
    EXPECT_EQ(second->size(), 6u);
    Context fresh(engine_.model.config, 30, type);
    EXPECT_EQ(logits(*second, other), logits(fresh, other)) << name_of(type);
    pool.release(first);
    Context* const again = pool.acquire(text, 20);
    EXPECT_EQ(again, first) << "an idle context is continued in place";
    EXPECT_EQ(again->size(), text.size() - 1) << "the last token's logits are needed";
  }
}

TEST_F(ContextPoolTest, DropsTheLeastRecentlyUsedAndNothingInUse) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(30));
  Context* const first = pool.acquire(Tokens{1, 2, 3}, 10);
  run(*first, {1, 2, 3});
  Context* const second = pool.acquire(Tokens{4, 5, 6}, 10);
  run(*second, {4, 5, 6});
  Context* const third = pool.acquire(Tokens{7, 8, 9}, 10);
  EXPECT_EQ(pool.acquire(Tokens{1}, 10), nullptr) << "all are in use";
  pool.release(third);
  pool.release(first);
  EXPECT_NE(pool.acquire(Tokens{9, 9}, 10), nullptr);
  EXPECT_EQ(pool.bytes(), bytes(30));
  EXPECT_EQ(pool.acquire(Tokens{1, 2, 3}, 10)->size(), 2u) << "the third one was dropped, not the first";
  EXPECT_THROW(pool.acquire(Tokens{1}, 31), Error);
}

}  // namespace
}  // namespace minimind
