#include "runtime/generate/scheduler.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/generate/context_pool.h"
#include "runtime/generate/speculate.h"
#include "tests/support/golden_engine.h"
#include "weights/base/error.h"

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
      double seconds = 0;
      Scheduler scheduler(forward, 5, longest_step, [&] { return seconds += static_cast<double>(random() % 1000); });
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

// A clock of a simulated machine: it shows what the tokens cost that were run since it was last read.
class SimulatedClock {
 public:
  using Cost = std::function<double(std::size_t decoded, std::size_t prompt, std::size_t prompt_position)>;

  SimulatedClock(const Context& decoded, const Context& prompt, Cost cost)
      : decoded_(decoded), prompt_(prompt), cost_(std::move(cost)) {}

  double read() {
    const std::size_t decoded = decoded_.size() - decoded_size_, tokens = prompt_.size() - prompt_size_;
    if (decoded + tokens > 0) {
      last_step_ = cost_(decoded, tokens, prompt_.size());
      seconds_ += last_step_;
    }
    decoded_size_ = decoded_.size();
    prompt_size_ = prompt_.size();
    return seconds_;
  }
  // When the prompt was replaced.
  void restart() {
    decoded_size_ = decoded_.size();
    prompt_size_ = prompt_.size();
  }
  double last_step() const { return last_step_; }

 private:
  const Context& decoded_;
  const Context& prompt_;
  Cost cost_;
  std::size_t decoded_size_ = 0, prompt_size_ = 0;
  double seconds_ = 0, last_step_ = 0;
};

// The gaps between the tokens of a text that is decoded while `prompts` prompts of 2,000 tokens come in.
struct Gaps {
  std::vector<double> all;
  std::size_t prompt_steps = 0;
};

Gaps gaps_during_long_prompts(const SimulatedClock::Cost& cost, std::size_t prompts) {
  GoldenEngine engine(distinct_case, 1);
  const std::atomic<bool> never = false;
  const std::size_t positions = 1 << 13;
  Forward forward(engine.model, kernels::choose(), 1, 256, positions);
  Context first(engine.model.config, positions), second(engine.model.config, 2000);
  SimulatedClock clock(first, second, cost);
  Scheduler scheduler(forward, 2, 2, [&] { return clock.read(); });
  const GenerateOptions endless = greedy(positions), once = greedy(1);
  Generation decoded(engine.model, first, nullptr, Tokens{1}, endless, silent, never);
  scheduler.add(decoded);
  scheduler.step();
  Gaps gaps;
  const auto step = [&] {
    const std::size_t size = first.size();
    scheduler.step();
    EXPECT_EQ(first.size(), size + 1) << "a step without a token of the text that is decoded";
    gaps.all.push_back(clock.last_step());
  };
  for (int i = 0; i < 10; ++i) step();
  for (std::size_t i = 0; i < prompts; ++i) {
    second.rewind(0);
    clock.restart();
    Generation prompt(engine.model, second, nullptr, Tokens(2000, 2), once, silent, never);
    scheduler.add(prompt);
    for (; scheduler.texts() == 2 && gaps.all.size() < positions - 100; ++gaps.prompt_steps) step();
    EXPECT_TRUE(prompt.ended());
  }
  for (int i = 0; i < 10; ++i) step();
  return gaps;
}

double longest_over_median(std::vector<double> gaps) {
  std::ranges::sort(gaps);
  return gaps.back() / gaps[gaps.size() / 2];
}

TEST(Scheduler, KeepsGapsShortWhileLongPromptsComeIn) {
  // A step without prompts takes 1. In the first machine a row costs nearly as much.
  const auto tiny = [](auto decoded, auto prompt, auto) {
    return 0.2 + 0.8 * static_cast<double>(decoded) + 0.8 * static_cast<double>(prompt);
  };
  const auto large = [](auto, auto prompt, auto) { return 1 + 0.01 * static_cast<double>(prompt); };
  const auto deep = [](auto, auto prompt, auto position) {
    return 1 + static_cast<double>(prompt) * (0.02 + 2e-4 * static_cast<double>(position));
  };
  const auto of_tiny = gaps_during_long_prompts(tiny, 2), of_large = gaps_during_long_prompts(large, 4),
             of_deep = gaps_during_long_prompts(deep, 4);
  for (const Gaps* const gaps : {&of_tiny, &of_large, &of_deep}) {
    EXPECT_LT(std::ranges::max(gaps->all), 3);
    EXPECT_LT(longest_over_median(gaps->all), 3);
  }
  // Twice the steps that the prompts take if each step is as long as it may be.
  EXPECT_LT(of_tiny.prompt_steps, 2u * 2 * 2000);
  EXPECT_LT(of_large.prompt_steps, 2u * 4 * 20);
  EXPECT_LT(of_deep.prompt_steps, 2u * 4 * 440);
}

// Texts on a simulated machine, where a step with one row takes 1, each further row `row_seconds` and a token of a
// prompt 0.01. One text is decoded throughout, unless there are to be `prompts_only`.
class SimulatedTexts {
 public:
  explicit SimulatedTexts(bool prompts_only = false, double row_seconds = 0) : row_seconds_(row_seconds) {
    if (prompts_only) return;
    add(1, 200);
    for (int i = 0; i < 10; ++i) step();
  }

  // Adds a text with a prompt of `prompt` tokens, which generates `tokens`.
  Generation& add(std::size_t prompt, std::size_t tokens, std::size_t request = 0) {
    Job& job = jobs_.emplace_back();
    job.options = greedy(tokens);
    job.context = std::make_unique<Context>(engine_.model.config, prompt + tokens);
    job.generation = std::make_unique<Generation>(engine_.model, *job.context, nullptr, Tokens(prompt, 2), job.options,
                                                  silent, never_);
    scheduler_.add(*job.generation, request);
    return *job.generation;
  }

  // Returns how long the step took.
  double step() {
    const double before = seconds_;
    scheduler_.step();
    EXPECT_EQ(ticks_ % 2, 0u);
    return seconds_ - before;
  }

  const StepWork& work() const { return scheduler_.work(); }

 private:
  // The scheduler reads the clock before a step and after it.
  double read_clock() {
    if (++ticks_ % 2 != 0) return seconds_;
    const std::size_t further_rows = std::max<std::size_t>(work().rows, 1) - 1;
    return seconds_ += 1 + row_seconds_ * static_cast<double>(further_rows) + 0.01 * static_cast<double>(work().tokens);
  }

  const double row_seconds_;
  const std::atomic<bool> never_ = false;
  GoldenEngine engine_{distinct_case, 1};
  Forward forward_{engine_.model, kernels::choose(), 1, 128, 4000};
  std::size_t ticks_ = 0;
  double seconds_ = 0;
  std::deque<Job> jobs_;
  Scheduler scheduler_{forward_, 16, 2, [this] { return read_clock(); }};
};

TEST(Scheduler, RunsShortPromptsAtOnceNextToTexts) {
  SimulatedTexts texts;
  for (const std::size_t size : {40u, 40u, 40u, 10u}) texts.add(size, 4);
  texts.step();
  EXPECT_EQ(texts.work().tokens, 127u) << "all that one step has room for";
  EXPECT_EQ(texts.work().rows, 1u);
  texts.step();
  EXPECT_EQ(texts.work().tokens, 3u);
  EXPECT_EQ(texts.work().rows, 4u);
}

TEST(Scheduler, ShortPromptsAndPartsOfALongPromptTakeTurns) {
  SimulatedTexts texts;
  const Generation& long_prompt = texts.add(2000, 1);
  const Generation* short_prompt = nullptr;
  std::size_t steps = 0, short_steps = 0, waiting = 0;
  for (; long_prompt.in_prompt() && steps < 190; ++steps) {
    if (!short_prompt || !short_prompt->in_prompt()) {
      short_prompt = &texts.add(24, 1);
      waiting = 0;
    }
    const std::size_t before = long_prompt.position();
    const double seconds = texts.step();
    if (long_prompt.position() == before) {
      short_steps += short_prompt->in_prompt() ? 0 : 1;
      EXPECT_LT(seconds, 1.25);
    } else {
      EXPECT_LT(seconds, 3);
    }
    EXPECT_LE(++waiting, 3u) << "steps until a short prompt is done";
  }
  EXPECT_FALSE(long_prompt.in_prompt());
  EXPECT_LT(steps, 150u) << "of which the long prompt takes 20 at least";
  EXPECT_GT(short_steps, steps / 3);
}

// Steps until the prompt is done.
std::size_t steps_of(SimulatedTexts& texts, const Generation& prompt) {
  std::size_t steps = 0;
  for (; prompt.in_prompt() && steps < 1000; ++steps) texts.step();
  return steps;
}

TEST(Scheduler, AShortPromptWaitsForNoLongOneWithoutOtherTexts) {
  SimulatedTexts texts(true);
  const Generation& long_prompt = texts.add(3000, 1);
  texts.step();
  const Generation& short_prompt = texts.add(24, 1);
  EXPECT_LE(steps_of(texts, short_prompt), 2u);
  EXPECT_TRUE(long_prompt.in_prompt());
}

TEST(Scheduler, APromptWaitsForNoLongerOneWhichStillComesToItsEnd) {
  for (const bool prompts_only : {true, false}) {
    SimulatedTexts texts(prompts_only);
    const Generation& longest = texts.add(3900, 1);
    texts.add(3800, 1);
    texts.step();
    const Generation& shorter = texts.add(600, 1);
    SimulatedTexts without_others(prompts_only);
    const std::size_t alone = steps_of(without_others, without_others.add(600, 1));
    EXPECT_LE(steps_of(texts, shorter), 2 * alone + 2) << prompts_only;
    EXPECT_TRUE(longest.in_prompt());
    // Shorter ones that follow take every second step.
    std::size_t steps = 0;
    for (; longest.in_prompt() && steps < 150; steps += steps_of(texts, texts.add(300, 1))) {
    }
    EXPECT_FALSE(longest.in_prompt()) << prompts_only;
  }
}

// Two requests on a machine where each row costs a step of its own: one text of the first, eight of the second.
TEST(Scheduler, ARequestWithManyTextsDelaysAnotherNoMoreThanTheLongestStep) {
  SimulatedTexts texts(false, 1);
  std::vector<const Generation*> many;
  for (int i = 0; i < 8; ++i) many.push_back(&texts.add(1, 150, 1));
  texts.step();
  constexpr int learning = 20, steps = 100;
  double seconds = 0;
  for (int i = 0; i < learning + steps; ++i) {
    const double step = texts.step();
    if (i < learning) continue;
    seconds += step;
    EXPECT_LE(step, 2 * 2 + 1) << "twice a step with a text of each, and one row for what is uncertain";
  }
  EXPECT_LE(seconds / steps, 2 * 2 + 0.1);
  EXPECT_GE(seconds / steps, 2 * 2 - 1) << "of the time that they may take";
  const auto [least, most] = std::ranges::minmax(many, {}, &Generation::position);
  EXPECT_LE(most->position() - least->position(), 1u) << "they take turns";
}

TEST(Scheduler, RequestsWithAsManyTextsEachRunTogether) {
  SimulatedTexts texts(true, 1);
  for (const std::size_t request : {1u, 1u, 1u, 2u, 2u, 2u}) texts.add(1, 50, request);
  for (int i = 0; i < 40; ++i) texts.step();
  EXPECT_EQ(texts.work().rows, 6u);
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

TEST(Scheduler, RunsNoMoreTokensOfPromptsThanAllowed) {
  GoldenEngine engine(distinct_case, 16);
  const std::atomic<bool> never = false;
  Scheduler scheduler(engine.forward, 2, no_limit);
  std::vector<Job> jobs(2);
  for (Job& job : jobs) {
    job.options = greedy(4);
    job.context = std::make_unique<Context>(engine.context());
    job.generation = std::make_unique<Generation>(engine.model, *job.context, nullptr, Tokens{1, 2, 3, 4}, job.options,
                                                  silent, never);
    scheduler.add(*job.generation);
  }
  std::vector<std::size_t> tokens;
  while (jobs[1].generation->in_prompt()) {
    scheduler.step(3);
    tokens.push_back(scheduler.work().tokens);
  }
  EXPECT_EQ(tokens, (std::vector<std::size_t>{3, 3, 2}));
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

// Allows everything, after parts of work that take some milliseconds each; those after a number of tokens fail.
class SlowConstraint final : public Constraint {
 public:
  SlowConstraint(std::size_t parts, std::size_t most_tokens) : parts_(parts), left_(parts), most_tokens_(most_tokens) {}

  bool prepare() override {
    if (left_ == 0) return true;
    if (tokens_ > most_tokens_) throw Error("too much work");
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return --left_ == 0;
  }
  std::span<const std::uint8_t> allowed() override {
    while (!prepare()) continue;
    return {};
  }
  void accept(std::int32_t, std::size_t) override {
    left_ = parts_;
    ++tokens_;
  }
  void forget() override {}
  bool finished() override { return false; }
  bool conforms(std::string_view) override { return true; }

 private:
  const std::size_t parts_;
  std::size_t left_, most_tokens_, tokens_ = 0;
};

TEST(Scheduler, TextsWhoseConstraintsAreSlowDelayNoOther) {
  GoldenEngine engine(distinct_case, 16);
  const Tokenizer tokenizer = tokenizer_of(texts_of(engine.golden, {}));
  const std::atomic<bool> never = false;
  static constexpr std::size_t slow_texts = 6, parts = 4;
  std::vector<Job> jobs(slow_texts + 1);
  Scheduler scheduler(engine.forward, jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    job.options = greedy(i < slow_texts ? 3 : 20);
    if (i < slow_texts) {
      const std::size_t most_tokens = i == 1 ? 1 : 100;
      job.options.constraint = [most_tokens](const UnconstrainedText&) {
        return std::make_unique<SlowConstraint>(parts, most_tokens);
      };
    }
    job.context = std::make_unique<Context>(engine.context());
    job.generation =
        std::make_unique<Generation>(engine.model, *job.context, &tokenizer, Tokens{1, 2}, job.options, silent, never);
    scheduler.add(*job.generation);
  }
  std::map<Generation*, std::size_t> steps;
  std::size_t step = 0;
  for (; scheduler.texts() > 0; ++step) {
    for (const auto& [generation, error] : scheduler.step()) {
      EXPECT_EQ(error != nullptr, generation == jobs[1].generation.get());
      steps[generation] = step;
    }
  }
  // A step has one part for each thread at most, but the other text has a token in each.
  EXPECT_LE(steps[jobs.back().generation.get()], 24U);
  EXPECT_GT(step, slow_texts * parts * 3 / (2 * engine.forward.threads()));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].generation->finish().tokens.size(), i == 1 ? 2U : jobs[i].options.max_tokens);
  }
}

class ContextPoolTest : public testing::Test {
 protected:
  ContextPoolTest() : engine_(distinct_case, 16) {}

  std::size_t bytes(std::size_t positions) const {
    return KvCache::bytes(engine_.model.config, KvType::f32, positions);
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

TEST_F(ContextPoolTest, WaitsForAPrefixThatAnotherTextIsComputing) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(10000));
  Tokens prompt(100, 3), other(100, 3), unlike(100, 3);
  other[40] = 4;
  unlike[24] = 4;
  Forward forward(engine_.model, kernels::choose(), 1, 16, 120);
  Context* const first = pool.acquire(prompt, 120);
  EXPECT_EQ(pool.acquire(other, 120), nullptr) << "the first will have 40 tokens of it";
  Context* const unrelated = pool.acquire(unlike, 120);
  ASSERT_NE(unrelated, nullptr) << "24 tokens are not worth waiting for";
  EXPECT_EQ(unrelated->size(), 0u);
  while (first->size() < 40) {
    EXPECT_EQ(pool.acquire(other, 120), nullptr);
    forward.run(*first, Tokens(8, 3), {});
  }
  Context* const second = pool.acquire(other, 120);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->size(), 40u);
  pool.release(first);
  pool.release(second);
  Tokens fresh(100, 5);
  Context* const failed = pool.acquire(fresh, 120);
  EXPECT_EQ(pool.acquire(fresh, 120), nullptr);
  pool.release(failed);
  EXPECT_NE(pool.acquire(fresh, 120), nullptr) << "no text computes it any more";
}

TEST_F(ContextPoolTest, DropsTheLeastRecentlyUsedAndNothingInUse) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(96));
  Context* const first = pool.acquire(Tokens{1, 2, 3}, 32);
  run(*first, {1, 2, 3});
  Context* const second = pool.acquire(Tokens{4, 5, 6}, 32);
  run(*second, {4, 5, 6});
  Context* const third = pool.acquire(Tokens{7, 8, 9}, 32);
  EXPECT_EQ(pool.acquire(Tokens{1}, 32), nullptr) << "all are in use";
  pool.release(third);
  pool.release(first);
  EXPECT_NE(pool.acquire(Tokens{9, 9}, 32), nullptr);
  EXPECT_EQ(pool.bytes(), bytes(96));
  EXPECT_EQ(pool.acquire(Tokens{1, 2, 3}, 32)->size(), 2u) << "the third one was dropped, not the first";
  EXPECT_THROW(pool.acquire(Tokens{1}, 97), Error);
}

// The memory of a text is in blocks of 32 positions, so a budget of ten blocks is that of ten texts of one token.
TEST_F(ContextPoolTest, CountsTheWholeBlocksOfShortTexts) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(320));
  std::vector<Context*> contexts;
  for (std::int32_t token = 0; token < 10; ++token) contexts.push_back(pool.acquire(Tokens{token}, 1));
  EXPECT_EQ(std::ranges::count(contexts, nullptr), 0);
  EXPECT_EQ(pool.bytes(), bytes(320));
  EXPECT_EQ(pool.acquire(Tokens{10}, 1), nullptr);
}

TEST_F(ContextPoolTest, KeepsAtMost512ContextsThatAreNotInUse) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(32 * 2000));
  for (std::int32_t text = 0; text < 600; ++text) pool.release(pool.acquire(Tokens{text % 100, text / 100}, 32));
  EXPECT_EQ(pool.bytes(), bytes(32 * 512));
}

TEST_F(ContextPoolTest, LeavesTheMemoryThatATextShallSpare) {
  ContextPool pool(engine_.model.config, KvType::f32, bytes(128));
  pool.release(pool.acquire(Tokens{9}, 64));  // is dropped for others
  ASSERT_NE(pool.acquire(Tokens{1}, 64), nullptr);
  EXPECT_EQ(pool.acquire(Tokens{2}, 64, bytes(32)), nullptr);
  EXPECT_NE(pool.acquire(Tokens{2}, 32, bytes(32)), nullptr);
}

TEST_F(ContextPoolTest, TextsOfOnePromptShareItsMemoryWhichCountsOnce) {
  const Tokens prompt(100, 3);
  Forward forward(engine_.model, kernels::choose(), 1, 128, 160);
  ContextPool pool(engine_.model.config, KvType::f32, bytes(160 + 2 * (160 - 96)));
  Context* const first = pool.acquire(prompt, 160);
  forward.run(*first, prompt, {});
  Context* const second = pool.acquire(prompt, 160);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->size(), 99u);
  EXPECT_EQ(pool.bytes(), bytes(160 + 160 - 96));
  Context* const third = pool.acquire(prompt, 160);
  EXPECT_EQ(third->cache().parts()[0].cells, first->cache().parts()[0].cells);
  EXPECT_EQ(pool.bytes(), bytes(160 + 2 * (160 - 96)));
  EXPECT_EQ(pool.acquire(Tokens{1}, 1), nullptr) << "the budget is used up";
  pool.release(first);
  pool.release(second);
  ASSERT_NE(pool.acquire(Tokens{1}, 64), nullptr);
  EXPECT_EQ(pool.bytes(), bytes(160 + 2 * 64)) << "what the third text shares stays when the first is dropped";
  pool.release(third);
  pool.clear();
  EXPECT_EQ(pool.bytes(), bytes(64));
}

TEST_F(ContextPoolTest, TextsWithACommonStartShareACopyOfIt) {
  Tokens prompt(300, 3), second_prompt = prompt, third_prompt = prompt;
  prompt[200] = 4;
  second_prompt[200] = 5;
  third_prompt[200] = 6;
  Forward forward(engine_.model, kernels::choose(), 1, 300, 400);
  ContextPool pool(engine_.model.config, KvType::q8_0, 1 << 30);
  Context* const first = pool.acquire(prompt, 400);
  forward.run(*first, prompt, {});
  Context* const second = pool.acquire(second_prompt, 400);
  EXPECT_EQ(second->size(), 200u);
  EXPECT_NE(second->cache().parts()[0].cells, first->cache().parts()[0].cells);
  Context* const third = pool.acquire(third_prompt, 400);
  EXPECT_EQ(third->size(), 200u);
  EXPECT_EQ(third->cache().parts()[0].cells, second->cache().parts()[0].cells);
  EXPECT_EQ(third->cache().parts()[0].positions.end, 192u);
}

TEST_F(ContextPoolTest, AContextThatOthersShareIsNotContinuedInPlace) {
  const Tokens prompt(100, 3);
  Tokens other(prompt);
  other[80] = 4;
  Forward forward(engine_.model, kernels::choose(), 1, 128, 160);
  ContextPool pool(engine_.model.config, KvType::f32, bytes(1000));
  Context* const first = pool.acquire(prompt, 120);
  forward.run(*first, prompt, {});
  Context* const second = pool.acquire(prompt, 120);
  pool.release(first);
  Context* const third = pool.acquire(other, 120);
  EXPECT_NE(third, first) << "80 positions are less than what the second text shares";
  EXPECT_EQ(third->size(), 80u);
  EXPECT_EQ(pool.acquire(prompt, 120), first) << "99 positions are more";
  EXPECT_EQ(first->cache().parts()[0].cells, second->cache().parts()[0].cells);
}

// A text that shares may need the memory that what it shares keeps from being dropped.
TEST_F(ContextPoolTest, DropsAPrefixRatherThanNeverStarting) {
  const Tokens prompt(100, 3);
  Forward forward(engine_.model, kernels::choose(), 1, 128, 300);
  ContextPool pool(engine_.model.config, KvType::f32, bytes(300));
  Context* const first = pool.acquire(prompt, 200);
  forward.run(*first, prompt, {});
  pool.release(first);
  Context* const second = pool.acquire(prompt, 300);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->size(), 0u);
  EXPECT_EQ(pool.bytes(), bytes(300));
}

// The context of the prefix is older than another one, either of which makes the room.
TEST_F(ContextPoolTest, DropsThePrefixOfTheNewTextLast) {
  const Tokens prompt(100, 3);
  Forward forward(engine_.model, kernels::choose(), 1, 128, 200);
  ContextPool pool(engine_.model.config, KvType::f32, bytes(300));
  Context* const first = pool.acquire(prompt, 100);
  forward.run(*first, prompt, {});
  pool.release(first);
  Context* const other = pool.acquire(Tokens{1, 2, 3}, 100);
  run(*other, {1, 2, 3});
  pool.release(other);
  Context* const second = pool.acquire(prompt, 200);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->size(), 99u);
}

}  // namespace
}  // namespace minimind
