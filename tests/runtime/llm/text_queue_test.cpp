#include "runtime/llm/text_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/forgetful_constraint.h"
#include "tests/support/golden_engine.h"
#include "tests/support/text_jobs.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// The tokens of a text's prompt, no two of which have a common prefix.
constexpr std::size_t prompt_tokens = 2;

class TextQueueTest : public testing::Test {
 protected:
  struct End {
    std::size_t number;
    Generated generated;
    std::string error;
  };

  // Of a text's context: a block of memory for each token, so that two texts of n tokens take as much as one of 2n.
  static constexpr std::size_t capacity_of(std::size_t max_tokens) {
    return kernels::block_cols * (prompt_tokens + max_tokens);
  }
  std::size_t bytes_of(std::size_t max_tokens) const {
    return KvCache::bytes(llm_.config, llm_.kv_type, capacity_of(max_tokens));
  }

  TextQueueLimits limits(std::size_t parallel, std::size_t max_tokens) const {
    return {.parallel = parallel,
            .kv_memory = bytes_of(max_tokens),
            .step_tokens = 8,
            .longest_step = std::numeric_limits<double>::infinity()};
  }

  // A text of exactly `max_tokens`.
  TextJob job(std::size_t number, std::size_t max_tokens) {
    GenerationTask task{.prompt = {static_cast<std::int32_t>(number % 100), 7},
                        .options = greedy(max_tokens),
                        .capacity = capacity_of(max_tokens)};
    return {.task = std::make_shared<const GenerationTask>(std::move(task)),
            .on_end = [this, number](Generated generated, const std::exception_ptr& error) {
              ends_.push_back({number, std::move(generated), message_of(error)});
            }};
  }

  // With a task that `change` has changed.
  template <class Change>
  static TextJob changed(TextJob job, const Change& change) {
    GenerationTask task = *job.task;
    change(task);
    job.task = std::make_shared<const GenerationTask>(std::move(task));
    return job;
  }

  // The order in which texts end: a long one of 90 blocks of memory, the second of so many blocks, and 38 that are
  // small: they take at most a thirty-second of all 128 blocks.
  std::vector<std::size_t> order_beside_small_texts(std::size_t blocks) {
    TextQueueLimits limits = this->limits(4, 40);
    limits.kv_memory = KvCache::bytes(llm_.config, llm_.kv_type, kernels::block_cols * 128);
    TextQueue queue(llm_, limits);
    const auto with_blocks = [](std::size_t count) {
      return [count](GenerationTask& task) { task.capacity = kernels::block_cols * count; };
    };
    queue.submit(one(changed(job(0, 50), with_blocks(90))));
    queue.submit(one(changed(job(1, 1), with_blocks(blocks))));
    for (std::size_t i = 2; i < 40; ++i) queue.submit(one(job(i, 2)));
    run(queue);
    return numbers();
  }

  // A request of `count` such texts, of a client that may be behind.
  std::vector<TextJob> jobs(std::size_t first, std::size_t count, std::size_t max_tokens,
                            const std::atomic<bool>* behind = nullptr) {
    std::vector<TextJob> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(job(first + i, max_tokens));
      jobs.back().behind = behind;
    }
    return jobs;
  }

  void run(TextQueue& queue) {
    for (int steps = 0; queue.texts() > 0; ++steps) {
      ASSERT_LT(steps, 1000);
      queue.step();
    }
  }

  std::vector<std::size_t> numbers() const {
    std::vector<std::size_t> numbers;
    for (const End& end : ends_) numbers.push_back(end.number);
    return numbers;
  }

  GoldenEngine golden_{distinct_case, 8};
  const Config config_ = golden_.model.config;
  LLM llm_{.model = std::make_shared<Model>(std::move(golden_.model)),
           .config = config_,
           .kernels = kernels::choose(),
           .threads = 1,
           .kv_type = KvType::f32,
           .positions = 64};
  std::vector<End> ends_;
};

TEST_F(TextQueueTest, RequestsTakeTurns) {
  TextQueue queue(llm_, limits(1, 10));
  queue.submit(jobs(0, 3, 2));
  queue.submit(jobs(10, 3, 2));
  run(queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{0, 10, 1, 11, 2, 12}));
}

TEST_F(TextQueueTest, ATextPausesForThatOfARequestWithFewerPlaces) {
  TextQueue queue(llm_, limits(2, 100));
  queue.submit(jobs(0, 4, 12));
  queue.step();
  queue.step();
  queue.submit(one(job(10, 2)));
  queue.submit(one(job(11, 2)));
  run(queue);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{10, 11, 0, 1, 2, 3}));
  const std::vector<std::int32_t> paused = ends_[3].generated.tokens;
  ends_.clear();
  TextQueue alone(llm_, limits(2, 100));
  alone.submit(one(job(1, 12)));
  run(alone);
  EXPECT_EQ(paused, ends_[0].generated.tokens) << "a pause changes no token";
}

TEST_F(TextQueueTest, APausedTextThatNobodyWaitsForEndsAtOnce) {
  std::atomic<bool> gone = false;
  TextQueue queue(llm_, limits(2, 100));
  std::vector<TextJob> two = jobs(0, 2, 30);
  two[1].gone = &gone;
  queue.submit(std::move(two));
  queue.step();
  queue.submit(one(job(2, 30)));
  queue.step();
  gone = true;
  queue.step();
  ASSERT_EQ(numbers(), std::vector<std::size_t>{1});
  EXPECT_EQ(ends_[0].generated.finish_reason, FinishReason::interrupted);
  EXPECT_EQ(ends_[0].generated.tokens.size(), 1u) << "that of the first step";
  EXPECT_EQ(queue.running(), 2u);
  run(queue);
}

TEST_F(TextQueueTest, ATextThatIsNotReadPausesAfterItsFirstToken) {
  std::atomic<bool> behind = false;
  TextQueue queue(llm_, limits(1, 100));
  TextJob unread = job(0, 12);
  unread.behind = &behind;
  unread.on_first_token = [&] { behind = true; };
  int goes_on = 0;
  unread.on_read = [&] { ++goes_on; };
  queue.submit(one(std::move(unread)));
  queue.submit(one(job(1, 40)));
  while (ends_.empty()) queue.step();
  EXPECT_TRUE(behind);
  EXPECT_EQ(numbers(), std::vector<std::size_t>{1}) << "although there is only one place";
  queue.step();
  EXPECT_FALSE(queue.can_compute());
  EXPECT_EQ(queue.running(), 1u);
  EXPECT_EQ(goes_on, 0);
  behind = false;
  run(queue);
  EXPECT_EQ(goes_on, 1);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{1, 0}));
  const std::vector<std::int32_t> paused = ends_[1].generated.tokens;
  TextQueue alone(llm_, limits(1, 100));
  alone.submit(one(job(0, 12)));
  run(alone);
  EXPECT_EQ(paused, ends_[2].generated.tokens) << "a pause changes no token";
}

TEST_F(TextQueueTest, ATextThatPausesKeepsLittleOfItsConstraintsMemory) {
  std::atomic<bool> behind = false;
  llm_.tokenizer = tokenizer_of(texts_of(golden_.golden, {}));
  int forgotten = 0;
  TextQueue queue(llm_, limits(1, 100));
  TextJob unread = changed(job(0, 12), [&](GenerationTask& task) {
    task.options.constraint = [&](const UnconstrainedText&) {
      return std::make_unique<ForgetfulConstraint>(forgotten);
    };
  });
  unread.on_first_token = [&] {
    EXPECT_EQ(forgotten, 0);
    behind = true;
  };
  unread.behind = &behind;
  queue.submit(one(std::move(unread)));
  for (int i = 0; i < 10; ++i) queue.step();
  EXPECT_EQ(forgotten, 1);
  behind = false;
  run(queue);
  EXPECT_EQ(forgotten, 1);
}

TEST_F(TextQueueTest, AFewTextsThatAreNotReadGoOnWhileAnotherWaitsForMemory) {
  std::array<std::atomic<bool>, 2> clients{};  // whether they are behind
  TextQueueLimits limits = this->limits(10, 6);
  limits.step_tokens = 32;  // all begin in a step
  limits.kv_memory = 10 * bytes_of(20) + bytes_of(30);
  TextQueue queue(llm_, limits);
  const auto fall_behind = [&](std::atomic<bool>& behind, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      TextJob unread = job(i, i == 0 ? 30 : 20);
      unread.behind = &behind;
      queue.submit(one(std::move(unread)));
    }
    queue.step();
    behind = true;
    queue.step();
  };
  fall_behind(clients[0], 0, 6);
  fall_behind(clients[1], 6, 5);
  EXPECT_EQ(queue.running(), 11u);
  EXPECT_FALSE(queue.can_compute());
  queue.submit(one(job(11, 20)));
  for (int i = 0; i < 60; ++i) queue.step();
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 11})) << "those that end soonest";
  EXPECT_EQ(queue.running(), 3u) << "as nothing waits any more";
  clients[0] = clients[1] = false;
  run(queue);
  EXPECT_EQ(ends_.size(), 12u);
}

TEST_F(TextQueueTest, TextsOfAClientThatIsBehindDoNotStart) {
  std::atomic<bool> behind = false;
  TextQueueLimits limits = this->limits(2, 6);
  limits.kv_memory = 4 * bytes_of(6);
  TextQueue queue(llm_, limits);
  queue.submit(jobs(0, 8, 6, &behind));
  queue.step();
  behind = true;
  for (int i = 0; i < 30; ++i) queue.step();
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(queue.running(), 2u);
  EXPECT_FALSE(queue.can_compute()) << "it does not wait for memory by itself";
  queue.hurry(true);
  run(queue);
  EXPECT_EQ(ends_.size(), 8u);
}

// More of them than texts that are looked at in a step.
TEST_F(TextQueueTest, TextsOfAClientThatIsBehindAreNotInTheWayOfOthers) {
  std::atomic<bool> behind = false;
  TextQueue queue(llm_, limits(2, 100));
  queue.submit(jobs(0, 100, 2, &behind));
  queue.step();
  behind = true;
  queue.submit(jobs(100, 100, 1));
  for (int i = 0; i < 300; ++i) queue.step();
  EXPECT_EQ(ends_.size(), 100u);
  EXPECT_EQ(std::ranges::count_if(ends_, [](const End& end) { return end.number < 100; }), 0);
}

TEST_F(TextQueueTest, ATextThatWaitsToBeReadEndsAtOnceWhenItsClientIsGone) {
  std::atomic<bool> behind = false, gone = false;
  TextQueue queue(llm_, limits(2, 20));
  TextJob unread = job(0, 10);
  unread.behind = &behind;
  unread.gone = &gone;
  queue.submit(one(std::move(unread)));
  queue.step();
  behind = true;
  queue.step();
  EXPECT_FALSE(queue.can_compute());
  gone = true;
  queue.step();
  ASSERT_EQ(numbers(), std::vector<std::size_t>{0});
  EXPECT_EQ(ends_[0].generated.finish_reason, FinishReason::interrupted);
}

// New weights wait for the ends of texts that have the old ones.
TEST_F(TextQueueTest, TextsThatAreNotReadEndWhenAnotherQueueHasTakenOver) {
  std::atomic<bool> behind = false;
  TextQueue old_queue(llm_, limits(7, 100)), new_queue(llm_, limits(7, 100));
  old_queue.submit(jobs(0, 6, 6, &behind));
  old_queue.step();
  behind = true;
  for (int i = 0; i < 30; ++i) old_queue.step();
  EXPECT_TRUE(ends_.empty());
  new_queue.take_waiting(old_queue);
  run(old_queue);
  EXPECT_EQ(ends_.size(), 6u);
}

TEST_F(TextQueueTest, ManyTextsThatNobodyWaitsForEndAPartInEachStep) {
  std::atomic<bool> gone = false;
  TextQueue queue(llm_, limits(2, 100));
  queue.submit(one(job(0, 30)));
  std::vector<TextJob> many = jobs(1, 2000, 50);
  for (TextJob& job : many) job.gone = &gone;
  queue.submit(std::move(many));
  queue.step();
  EXPECT_EQ(queue.running(), 2u);
  gone = true;
  queue.step();
  EXPECT_EQ(ends_.size(), 1 + 1024u) << "the one that runs, too";
  EXPECT_EQ(queue.running(), 1u) << "no other starts";
  queue.step();
  EXPECT_EQ(ends_.size(), 2000u);
  run(queue);
}

// Penalties of nothing, which count how many texts have them.
class CountedPenalties : public TextPenalties {
 public:
  explicit CountedPenalties(std::shared_ptr<int> count) : count_(std::move(count)) { ++*count_; }
  ~CountedPenalties() override { --*count_; }
  std::unique_ptr<TextPenalties> copy() const override { return std::make_unique<CountedPenalties>(count_); }
  void accept(std::int32_t) override {}
  std::span<const LogitBias> penalties() override { return {}; }

 private:
  const std::shared_ptr<int> count_;
};

TEST_F(TextQueueTest, TextsThatHaveEndedKeepLittleMemoryWhileOthersRun) {
  TextQueue queue(llm_, limits(4, 400));
  const auto count = std::make_shared<int>(0);
  const TextJob counted = changed(job(1, 1), [&](GenerationTask& task) {
    task.options.penalties = std::make_shared<const CountedPenalties>(count);
  });
  queue.submit(one(job(0, 60)));
  queue.submit(std::vector<TextJob>(150, counted));
  int most = 0;
  while (queue.texts() > 1) {
    queue.step();
    most = std::max(most, *count);
  }
  EXPECT_EQ(queue.running(), 1u) << "the first one";
  EXPECT_LT(most, 50);
  run(queue);
}

TEST_F(TextQueueTest, ARequestOfManyTextsLeavesMemoryToOthers) {
  TextQueueLimits limits = this->limits(6, 2);
  limits.kv_memory = 4 * bytes_of(2);
  TextQueue queue(llm_, limits);
  queue.submit(jobs(0, 8, 2));
  queue.start();
  EXPECT_EQ(queue.running(), 3u);
  queue.submit(one(job(10, 2)));
  queue.start();
  EXPECT_EQ(queue.running(), 4u);
  run(queue);
}

TEST_F(TextQueueTest, InOrderNoTextOfALaterRequestStartsBeforeOneOfAnEarlier) {
  TextQueueLimits in_order = limits(2, 10);
  in_order.in_order = true;
  TextQueue queue(llm_, in_order);
  std::vector<TextJob> first;
  first.push_back(job(0, 6));
  first.push_back(job(1, 10));  // waits until all of the memory is free
  queue.submit(std::move(first));
  queue.submit(one(job(2, 2)));
  run(queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(TextQueueTest, OtherwiseATextPassesOneThatWaitsForMemory) {
  TextQueue queue(llm_, limits(2, 10));
  queue.submit(one(job(0, 6)));
  queue.submit(one(job(1, 10)));
  queue.submit(one(job(2, 2)));
  run(queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{2, 0, 1}));
}

TEST_F(TextQueueTest, ARemovedTextLeavesItsPlaceAndItsMemory) {
  TextQueue queue(llm_, limits(1, 10));
  const TextJob removed = job(0, 10), waiting = job(1, 10);
  queue.submit(one(removed));
  queue.submit(one(waiting));
  queue.step();
  ASSERT_NE(queue.running(*removed.task), nullptr);
  queue.remove(*removed.task);
  queue.remove(*waiting.task);
  EXPECT_EQ(queue.texts(), 0u);
  EXPECT_EQ(queue.running(*removed.task), nullptr);
  queue.submit(one(job(2, 10)));
  run(queue);
  EXPECT_EQ(numbers(), std::vector<std::size_t>{2});
}

TEST_F(TextQueueTest, ATextWithAContextOfItsOwnNeedsNoneOfTheMemory) {
  TextQueue queue(llm_, limits(2, 10));
  Context own = llm_.context(40);
  TextJob with_own = job(0, 30);
  with_own.context = &own;
  queue.submit(one(with_own));
  queue.submit(one(job(1, 10)));
  queue.step();
  EXPECT_EQ(queue.running(), 2u);
  run(queue);
  EXPECT_GE(own.size(), prompt_tokens + 29);
}

TEST_F(TextQueueTest, SaysThatTheFirstTokenIsThereAndThenTheEnd) {
  TextQueue queue(llm_, limits(1, 10));
  std::vector<std::string> calls;
  TextJob text = job(0, 3);
  text.on_first_token = [&] { calls.emplace_back("first token"); };
  text.on_end = [&](const Generated& generated, const std::exception_ptr&) {
    calls.push_back(std::to_string(generated.tokens.size()) + " tokens");
  };
  queue.submit(one(std::move(text)));
  run(queue);
  EXPECT_EQ(calls, (std::vector<std::string>{"first token", "3 tokens"}));
}

TEST_F(TextQueueTest, ATextThatNobodyWaitsForEndsBeforeItStarts) {
  TextQueue queue(llm_, limits(1, 10));
  std::atomic<bool> gone = false;
  TextJob text = job(1, 5);
  text.gone = &gone;
  queue.submit(one(job(0, 5)));
  queue.submit(one(std::move(text)));
  queue.step();
  gone = true;
  queue.step();
  ASSERT_EQ(numbers(), std::vector<std::size_t>{1});
  EXPECT_EQ(ends_[0].generated.finish_reason, FinishReason::interrupted);
  EXPECT_TRUE(ends_[0].generated.tokens.empty());
}

TEST_F(TextQueueTest, ATextThatFailsLeavesTheOthersAlone) {
  TextQueue queue(llm_, limits(2, 20));
  GenerationTask empty{.prompt = {}, .options = greedy(5), .capacity = 7};
  TextJob failing = job(0, 5);
  failing.task = std::make_shared<const GenerationTask>(std::move(empty));
  queue.submit(one(failing));
  queue.submit(one(job(1, 5)));
  run(queue);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_NE(ends_[0].error.find("the prompt is empty"), std::string::npos) << ends_[0].error;
  EXPECT_EQ(ends_[1].generated.tokens.size(), 5u);
}

TEST_F(TextQueueTest, ATextThatFailsInAStepEndsWithThatError) {
  TextQueue queue(llm_, limits(2, 20));
  queue.submit(one(changed(job(0, 5), [](GenerationTask& task) {
    task.options.process = [](auto, auto) -> std::span<const float> { throw Error("no scores"); };
  })));
  queue.submit(one(job(1, 5)));
  run(queue);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(ends_[0].error, "no scores");
  EXPECT_EQ(ends_[1].generated.tokens.size(), 5u);
}

TEST_F(TextQueueTest, ATextThatAllOfTheMemoryIsTooLittleForEndsWithAnError) {
  TextQueue queue(llm_, limits(1, 10));
  queue.submit(one(job(0, 11)));
  queue.submit(one(job(1, 10)));
  run(queue);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_NE(ends_[0].error.find("give a smaller max_tokens"), std::string::npos) << ends_[0].error;
  EXPECT_EQ(ends_[1].error, "");
}

TEST_F(TextQueueTest, TextsThatWaitCanGoToAnotherQueueWhileTheOthersEnd) {
  TextQueue old_queue(llm_, limits(1, 20)), new_queue(llm_, limits(1, 20));
  old_queue.submit(one(job(0, 10)));
  old_queue.submit(one(job(1, 5)));
  old_queue.step();
  new_queue.take_waiting(old_queue);
  EXPECT_EQ(old_queue.texts(), 1u);
  EXPECT_EQ(new_queue.waiting(), 1u);
  run(new_queue);
  run(old_queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{1, 0}));
}

TEST_F(TextQueueTest, ATextThatWasComparedForLongStartsAtOnceInAnotherQueue) {
  TextQueueLimits limits = this->limits(2, 20);
  limits.most_compared = 1;
  TextQueue old_queue(llm_, limits), new_queue(llm_, limits);
  old_queue.submit(one(job(0, 20)));
  old_queue.step();
  old_queue.submit(one(job(0, 20)));
  old_queue.step();
  ASSERT_EQ(old_queue.waiting(), 1u) << "it has no memory";
  new_queue.take_waiting(old_queue);
  new_queue.step();
  EXPECT_EQ(new_queue.running(), 1u);
  run(new_queue);
  run(old_queue);
}

TEST_F(TextQueueTest, TextsThatGoToAnotherQueueKeepTheirTurns) {
  TextQueue old_queue(llm_, limits(1, 20)), new_queue(llm_, limits(1, 20));
  old_queue.submit(jobs(0, 6, 2));
  while (ends_.size() < 3) old_queue.step();
  new_queue.take_waiting(old_queue);
  run(old_queue);
  new_queue.submit(jobs(10, 3, 2));
  run(new_queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{0, 1, 2, 10, 3, 11, 4, 12, 5}));
}

TEST_F(TextQueueTest, ATextThatRunsEndsWhenNobodyWaitsForItAnyMore) {
  TextQueue queue(llm_, limits(2, 40));
  std::atomic<bool> gone = false;
  TextJob text = job(0, 10);
  text.gone = &gone;
  queue.submit(one(std::move(text)));
  queue.submit(one(job(1, 10)));
  queue.step();
  queue.step();
  gone = true;
  run(queue);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(ends_[0].generated.finish_reason, FinishReason::interrupted);
  EXPECT_LT(ends_[0].generated.tokens.size(), 4u);
  EXPECT_EQ(ends_[1].generated.tokens.size(), 10u);
}

TEST_F(TextQueueTest, ATextThatSixteenOthersHavePassedIsNext) {
  TextQueue queue(llm_, limits(2, 40));
  queue.submit(one(job(0, 1)));
  queue.submit(one(job(1, 40)));  // takes all of the memory
  for (std::size_t i = 2; i < 30; ++i) queue.submit(one(job(i, 2)));
  run(queue);
  const std::vector<std::size_t> order = numbers();
  ASSERT_EQ(order.size(), 30u);
  EXPECT_EQ(std::ranges::find(order, 1u) - order.begin(), 17) << "the first, and the sixteen that passed it";
}

TEST_F(TextQueueTest, SmallTextsPassAllThatWaitForMemory) {
  const std::vector<std::size_t> order = order_beside_small_texts(90);
  ASSERT_EQ(order.size(), 40u);
  EXPECT_EQ(order[38], 0u) << "all the small ones ended beside it";
  EXPECT_EQ(order[39], 1u);
}

TEST_F(TextQueueTest, SmallTextsDoNotPassForEverATextThatNeedsTheirMemoryToo) {
  const std::vector<std::size_t> order = order_beside_small_texts(128);
  ASSERT_EQ(order.size(), 40u);
  EXPECT_LT(std::ranges::find(order, 1u) - order.begin(), 21)
      << "the first, and hardly more than the sixteen after which it is next";
}

TEST_F(TextQueueTest, TextsThatWaitForAPrefixAreNotInTheWayOfOthers) {
  TextQueueLimits limits = this->limits(4, 400);
  TextQueue queue(llm_, limits);
  const auto with_long_prompt = [this](std::size_t number) {
    return changed(job(number, 4), [](GenerationTask& task) {
      task.prompt.assign(50, 3);
      task.capacity = kernels::block_cols * 60;
    });
  };
  for (std::size_t i = 0; i < 30; ++i) queue.submit(one(with_long_prompt(i)));
  for (std::size_t i = 30; i < 50; ++i) queue.submit(one(job(i, 1)));
  queue.start();
  EXPECT_EQ(queue.running(), 4u) << "the first, and three others";
  run(queue);
  EXPECT_EQ(numbers().size(), 50u);
}

// Each of the long prompts would be compared with those that run in every step.
TEST_F(TextQueueTest, ManyLongPromptsThatWaitCostEachStepLittle) {
  const auto ends_with = [this](std::size_t most_compared) {
    TextQueueLimits limits = this->limits(7, 400);
    limits.most_compared = most_compared;
    TextQueue queue(llm_, limits);
    for (std::size_t i = 0; i < 64; ++i) {
      queue.submit(one(changed(job(i, 4), [i](GenerationTask& task) {
        task.prompt.assign(50, 3);
        task.prompt.push_back(static_cast<std::int32_t>(i));
      })));
    }
    std::size_t most = 0;
    for (int steps = 0; queue.texts() > 0 && steps < 1000; ++steps) {
      const std::size_t before = queue.pool().compared();
      queue.step();
      most = std::max(most, queue.pool().compared() - before);
    }
    std::ranges::sort(ends_, {}, &End::number);
    return std::pair(std::exchange(ends_, {}), most);
  };
  const auto [all, most_of_all] = ends_with(1'000'000);
  const auto [some, most_of_some] = ends_with(500);
  EXPECT_GT(most_of_all, 2000u);
  EXPECT_LT(most_of_some, 1500u) << "with one text more";
  ASSERT_EQ(some.size(), 64u);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(some[i].generated.tokens, all[i].generated.tokens) << i;
}

TEST_F(TextQueueTest, TextsThatHaveNoPlaceTakeTurnsWithThoseThatHaveHadOneForLong) {
  TextQueue queue(llm_, limits(2, 400));
  queue.submit(one(job(0, 50)));
  queue.submit(one(job(1, 50)));
  for (int steps = 0; steps < 40; ++steps) queue.step();
  queue.submit(one(job(2, 2)));
  queue.submit(one(job(3, 50)));
  queue.step();
  EXPECT_EQ(queue.waiting(), 0u);
  queue.step();
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{2}));
  run(queue);
  EXPECT_EQ(numbers(), (std::vector<std::size_t>{2, 0, 1, 3}));
  const std::vector<std::int32_t> paused = ends_[1].generated.tokens;
  ends_.clear();
  TextQueue alone(llm_, limits(2, 400));
  alone.submit(one(job(0, 50)));
  run(alone);
  EXPECT_EQ(paused, ends_[0].generated.tokens) << "a pause changes no token";
}

TEST_F(TextQueueTest, ATextThatWaitsForAPlaceComesBeforeThoseThatPause) {
  TextQueue queue(llm_, limits(2, 600));
  for (std::size_t i = 0; i < 6; ++i) queue.submit(one(job(i, 60)));
  for (int steps = 0; steps < 70; ++steps) queue.step();
  EXPECT_EQ(queue.waiting(), 0u) << "all six take turns";
  queue.submit(one(job(6, 1)));
  for (int steps = 0; steps < 33; ++steps) queue.step();
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{6}));
  run(queue);
  EXPECT_EQ(numbers().size(), 7u);
}

TEST_F(TextQueueTest, ATextThatPausesGoesOnWhileNewOnesCome) {
  TextQueue queue(llm_, limits(2, 20'000));
  queue.submit(one(job(0, 60)));
  std::size_t next = 1;
  for (int steps = 0; steps < 500 && std::ranges::find(ends_, 0u, &End::number) == ends_.end(); ++steps) {
    while (queue.waiting() < 3) queue.submit(one(job(next++, 50)));
    queue.step();
  }
  EXPECT_NE(std::ranges::find(ends_, 0u, &End::number), ends_.end());
}

TEST_F(TextQueueTest, TextsThatHaveEndedKeepTheirResultsWhenTheOthersFail) {
  TextQueue queue(llm_, limits(2, 40));
  queue.submit(one(job(0, 1)));
  queue.submit(one(job(1, 9)));
  queue.start();
  while (queue.running() == 2) queue.compute();
  queue.submit(one(job(2, 9)));
  const auto failed = std::make_exception_ptr(Error("failed"));
  queue.end_running(failed);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(ends_[0].error, "");
  EXPECT_EQ(ends_[0].generated.tokens.size(), 1u);
  EXPECT_EQ(ends_[1].error, "failed");
  queue.end_waiting(failed);
  ASSERT_EQ(numbers(), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(ends_[2].error, "failed");
  EXPECT_EQ(queue.texts(), 0u);
  queue.submit(one(job(3, 38)));
  run(queue);
  EXPECT_EQ(ends_.back().error, "") << "their memory is free";
}

TEST_F(TextQueueTest, WhatGetsThePiecesOfATextGoesBeforeItsEnd) {
  TextQueue queue(llm_, limits(1, 10));
  const auto held = std::make_shared<int>(0);
  TextJob text = job(0, 2);
  text.on_text = [held](std::string_view, const Generation&) {};
  long holders = 0;
  text.on_end = [&](const Generated&, const std::exception_ptr&) { holders = held.use_count(); };
  queue.submit(one(std::move(text)));
  run(queue);
  EXPECT_EQ(holders, 1) << "this test";
}

// The one token of the text is the start of a character, which is only shown at the end.
TEST_F(TextQueueTest, AnErrorAboutTheLastPieceOfATextEndsItWithThatError) {
  llm_.tokenizer = tokenizer_of(texts_of(golden_.golden, {"\xE4"}));
  TextQueue queue(llm_, limits(1, 60));
  GenerationTask task{.prompt = golden_.prompt(), .options = greedy(1), .capacity = golden_.prompt().size() + 1};
  TextJob text = job(0, 1);
  text.task = std::make_shared<const GenerationTask>(std::move(task));
  text.on_text = [](std::string_view, const Generation&) { throw Error("nobody takes it"); };
  queue.submit(one(std::move(text)));
  run(queue);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].error, "nobody takes it");
}

TEST_F(TextQueueTest, ScoresAllOfAPromptThatAnotherTextHad) {
  TextQueue queue(llm_, limits(1, 60));
  GenerationTask task{.prompt = golden_.prompt(), .options = greedy(1), .capacity = golden_.prompt().size() + 1};
  ASSERT_GT(task.prompt.size(), 2u);
  for (const bool scored : {false, true}) {
    task.options.scores = scored ? std::optional<std::size_t>(0) : std::nullopt;
    task.options.score_prompt = scored;
    TextJob text = job(scored, 1);
    text.task = std::make_shared<const GenerationTask>(task);
    queue.submit(one(std::move(text)));
    run(queue);
  }
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(ends_[1].generated.prompt_scores.size(), task.prompt.size() - 1);
  EXPECT_EQ(ends_[1].generated.tokens, ends_[0].generated.tokens);
}

}  // namespace
}  // namespace minimind
