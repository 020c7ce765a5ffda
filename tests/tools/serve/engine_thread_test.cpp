#include "tools/serve/engine_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "tests/support/text_jobs.h"
#include "tools/openai/request_error.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using namespace std::chrono_literals;

GenerationArguments small_arguments() {
  GenerationArguments arguments;
  arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  arguments.run.quiet = true;
  arguments.run.threads = 1;
  return arguments;
}

const TextModel& small_model() {
  static const TextModel model(small_arguments(), "");
  return model;
}

// The ends of texts, in order, and a hold on the engine's thread.
class Events {
 public:
  struct End {
    std::size_t number;
    Generated generated;
    std::string error;  // empty if there is none
  };

  void add(End end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
    changed_.notify_all();
  }

  // Waits for so many ends; fewer if they do not come.
  std::vector<End> wait(std::size_t count, std::chrono::seconds longest = 120s) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return ends_.size() >= count; });
    return ends_;
  }
  std::vector<End> now() { return wait(0); }

  // On the engine's thread: says that it is held, and waits until release().
  void hold() {
    std::unique_lock lock(mutex_);
    held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
  }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [this] { return held_; }));
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<End> ends_;
  bool held_ = false, released_ = false;
};

class EngineThreadTest : public testing::Test {
 protected:
  static constexpr std::size_t prompt_tokens = 2;

  ~EngineThreadTest() override { events_.release(); }

  // Bytes of keys and values of one text of `max_tokens`.
  static std::size_t bytes_of(std::size_t max_tokens) {
    const LLM& llm = small_model().llm();
    return KvCache::bytes(llm.config, llm.kv_type, prompt_tokens + max_tokens);
  }

  EngineThread& start(const EngineLimits& limits) {
    return engine_.emplace(small_model(), limits, turns_, [] {});
  }

  // A text that goes on to its limit. `change` may make it another.
  TextJob job(
      std::size_t number, std::size_t max_tokens, const std::function<void()>& on_text = {},
      const std::function<void(TextTask&)>& change = [](TextTask&) {}) {
    Request request;
    request.prompts = {{.tokens = {7, static_cast<std::int32_t>(10 + number)}}};
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    TextTask task = small_model().tasks(request, number, 0).front();
    change(task);
    TextJob job{.task = std::make_shared<const TextTask>(std::move(task))};
    if (on_text) job.on_text = [on_text](std::string_view, const Generation&) { on_text(); };
    job.on_end = [this, number](Generated generated, const std::exception_ptr& error) {
      events_.add({number, std::move(generated), message_of(error)});
    };
    return job;
  }

  // Text 0, whose client is behind from its twentieth piece on.
  TextJob unread_job(std::size_t max_tokens) {
    TextJob unread = job(0, max_tokens, [this] {
      if (++pieces_ == 20) behind_ = true;
    });
    unread.behind = &behind_;
    return unread;
  }

  StepTurns turns_;
  Events events_;
  std::atomic<bool> gone_{false}, behind_{false};
  std::atomic<int> pieces_{0};
  std::optional<EngineThread> engine_;  // ends before what its texts use
};

TEST_F(EngineThreadTest, EndsARunningTextWhoseClientIsGone) {
  EngineThread& engine = start({.parallel = 2, .kv_memory = bytes_of(1000), .queue = 4});
  auto text = job(0, 1000, [this] { gone_ = true; });
  text.gone = &gone_;
  engine.submit(one(std::move(text)));
  const auto ends = events_.wait(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].generated.finish_reason, FinishReason::interrupted);
  EXPECT_LT(ends[0].generated.tokens.size(), 10u);
  EXPECT_EQ(ends[0].error, "");
  EXPECT_EQ(engine.counts().abandoned, 1u);
}

// It looks 200 times a second whether they are read.
TEST_F(EngineThreadTest, SleepsWhileNoTextIsRead) {
  EngineThread& engine = start({.parallel = 2, .kv_memory = 2 * bytes_of(200), .queue = 4});
  engine.submit(one(unread_job(200)));
  while (pieces_ < 20) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  const auto cpu_before = std::clock();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(std::clock() - cpu_before, CLOCKS_PER_SEC / 10);
  EXPECT_LT(pieces_, 30);
  EXPECT_LT(engine.silent_for(), 200ms) << "it is no engine that hangs";
  engine.submit(one(job(1, 50)));
  ASSERT_EQ(events_.wait(1).size(), 1u);
  EXPECT_EQ(events_.now()[0].number, 1u);
  behind_ = false;
  const auto ends = events_.wait(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].generated.tokens.size(), 200u);
}

TEST_F(EngineThreadTest, TextsThatAreNotReadGoOnWhileNoOtherRequestHasRoom) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = 3 * bytes_of(100), .queue = 2});
  std::atomic<bool> behind{true};
  for (std::size_t i = 0; i < 3; ++i) {
    auto unread = job(i, 100);
    unread.behind = &behind;
    engine.submit(one(std::move(unread)));
  }
  ASSERT_EQ(events_.wait(1, 20s).size(), 1u);
  for (int i = 0; i < 1000 && engine.is_full(); ++i) std::this_thread::sleep_for(1ms);  // it is told before it counts
  EXPECT_FALSE(engine.is_full());
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(events_.now().size(), 1u);
  for (int i = 0; i < 10'000 && events_.now().size() < 3; ++i) {
    engine.hurry();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(events_.now().size(), 3u);
}

// A client that waits is not a model that is slow.
TEST_F(EngineThreadTest, ThePauseOfATextThatIsNotReadIsNoGapBetweenTokens) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(100), .queue = 2});
  const auto submitted = std::chrono::steady_clock::now();
  engine.submit(one(unread_job(100)));
  int before = 0;
  for (int i = 0; i < 100 && (before < 20 || before != pieces_); ++i) {
    before = pieces_;
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_GE(pieces_, 20);
  EXPECT_LT(pieces_, 30);
  const auto paused = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(1s);
  const auto read = std::chrono::steady_clock::now();
  behind_ = false;
  ASSERT_EQ(events_.wait(1).size(), 1u);
  const std::chrono::duration<double> computing = std::chrono::steady_clock::now() - read + (paused - submitted);
  EXPECT_LT(engine.counts().token_gap_seconds.sum(), computing.count());
}

// The text that waits for the place would otherwise notice only when it has it.
TEST_F(EngineThreadTest, EndsAWaitingTextWhoseClientIsGoneWhileAnotherRuns) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4});
  engine.submit(one(job(0, 50, [this] { events_.hold(); })));
  auto waiting = job(1, 50);
  waiting.gone = &gone_;
  engine.submit(one(std::move(waiting)));
  events_.wait_until_held();
  gone_ = true;
  events_.release();
  const auto ends = events_.wait(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].number, 1u);
  EXPECT_TRUE(ends[0].generated.tokens.empty());
  EXPECT_EQ(ends[1].generated.tokens.size(), 50u);
}

// Its answer takes long, as it has 21 scores for each of 100 tokens.
TEST_F(EngineThreadTest, TheEndOfATextWithManyScoresHoldsUpNoOther) {
  EngineThread& engine = start({.parallel = 2, .kv_memory = 2 * bytes_of(100), .queue = 4});
  auto scored = job(0, 100, {}, [](TextTask& task) { task.options.scores = 20; });
  scored.on_end = [this](Generated generated, const std::exception_ptr&) {
    events_.hold();
    events_.add({0, std::move(generated), ""});
  };
  engine.submit(one(std::move(scored)));
  events_.wait_until_held();
  engine.submit(one(job(1, 5)));
  EXPECT_EQ(events_.wait(1, 20s).size(), 1u);
  EXPECT_FALSE(engine.is_idle());
  events_.release();
  const auto ends = events_.wait(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].number, 1u);
  EXPECT_EQ(ends[1].generated.scores.size(), 100u);
  EXPECT_TRUE(engine.wait_until_idle(20s));
}

// The first has 1,000,000 ids' worth of work, and more than the other.
TEST_F(EngineThreadTest, AHugeAnswerDelaysNoLargeOne) {
  EngineThread& engine = start({.parallel = 2, .kv_memory = 2 * bytes_of(2), .queue = 4});
  auto huge = job(0, 2);
  huge.prompt_values = 1'000'000;
  huge.on_end = [this](const Generated&, const std::exception_ptr&) { events_.hold(); };
  engine.submit(one(std::move(huge)));
  events_.wait_until_held();
  auto large = job(1, 2);
  large.prompt_values = 900'000;
  engine.submit(one(std::move(large)));
  EXPECT_EQ(events_.wait(1, 20s).size(), 1u);
  EXPECT_FALSE(engine.is_idle());
  events_.release();
  EXPECT_TRUE(engine.wait_until_idle(20s));
}

TEST(TaskThreadTest, CostlyTasksKeepOutNoOthersAndOthersNoCostlyOnes) {
  std::promise<void> begun, go;
  std::string order;
  TaskThread tasks(6);
  EXPECT_TRUE(tasks.post([&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (const auto& [name, cost] : {std::pair('a', 9), {'b', 9}, {'c', 1}, {'d', 2}, {'e', 1}}) {
    EXPECT_TRUE(tasks.post([&order, name = name] { order += name; }, static_cast<std::size_t>(cost)));
  }
  std::promise<void> last;
  EXPECT_TRUE(tasks.post([&] { last.set_value(); }, 10));
  go.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, "caebd") << "in turns the cheapest and the oldest";
}

TEST(TaskThreadTest, WhereAllPlacesAreTakenTheCostliestTaskGivesUpItsOwn) {
  std::promise<void> begun, go, last;
  std::string order;
  const auto name = [&](char c) { return [&order, c] { order += c; }; };
  TaskThread tasks(3);
  EXPECT_TRUE(tasks.post([&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(tasks.post(name('a'), 5, name('A')));
  EXPECT_TRUE(tasks.post(name('b'), 7, name('B')));
  EXPECT_TRUE(tasks.post([&] { last.set_value(); }, 6));
  EXPECT_FALSE(tasks.post(name('c'), 7, name('C'))) << "it costs no less";
  EXPECT_TRUE(tasks.post(name('d'), 2, name('D')));
  EXPECT_EQ(order, "B");
  EXPECT_FALSE(tasks.post(name('e'), 5)) << "the costliest is not to be rejected";
  go.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, "Bda");
}

// What a task held may give it others when it ends.
TEST(TaskThreadTest, WhatATaskHeldEndsWithoutTheLock) {
  struct Held {
    ~Held() { action(); }
    std::function<void()> action;
  };
  std::promise<void> released, ended;
  TaskThread tasks(2);
  auto held = std::make_shared<Held>();
  held->action = [&] { EXPECT_TRUE(tasks.post([&] { ended.set_value(); })); };
  EXPECT_TRUE(tasks.post([held, &released] { released.get_future().wait(); }, 1, [held] {}));
  held.reset();
  released.set_value();
  EXPECT_EQ(ended.get_future().wait_for(20s), std::future_status::ready);
}

#ifdef __linux__
// On Linux, threads have priorities of their own, which those that they start inherit.
TEST(TaskThreadTest, WorkInTheBackgroundComesNoEarlierThanTheProgramDoes) {
  std::thread([] {
    EXPECT_EQ(setpriority(PRIO_PROCESS, 0, 19), 0);
    std::promise<int> found;
    TaskThread background(1, TaskThread::Priority::background);
    EXPECT_TRUE(background.post([&] { found.set_value(getpriority(PRIO_PROCESS, 0)); }));
    EXPECT_EQ(found.get_future().get(), 19);
  }).join();
}
#endif

// The answer is made at the end of the last text.
TEST_F(EngineThreadTest, AnswersOfMuchWorkAreMadeOnAnotherThread) {
  EngineThread& engine = start({.parallel = 8, .kv_memory = 8 * bytes_of(8), .queue = 4});
  std::thread::id own;
  engine.run_between_steps([&](ContextPool&) { own = std::this_thread::get_id(); });
  const auto is_on_own = [&](std::size_t texts, std::size_t tokens, std::size_t prompt_values) {
    std::atomic<std::thread::id> last;
    std::vector<TextJob> jobs;
    for (std::size_t i = 0; i < texts; ++i) {
      jobs.push_back(job(i, tokens));
      jobs.back().prompt_values = prompt_values;
      jobs.back().on_end = [&](const Generated& generated, const std::exception_ptr&) {
        EXPECT_EQ(generated.tokens.size(), tokens);
        last = std::this_thread::get_id();
      };
    }
    engine.submit(std::move(jobs));
    EXPECT_TRUE(engine.wait_until_idle(120s));
    return last.load() == own;
  };
  EXPECT_TRUE(is_on_own(1, 8, 2048));
  EXPECT_TRUE(is_on_own(128, 1, 0));
  EXPECT_FALSE(is_on_own(512, 1, 0)) << "many texts";
  EXPECT_TRUE(is_on_own(128, 1, 59));
  EXPECT_FALSE(is_on_own(128, 8, 59)) << "longer texts";
  EXPECT_FALSE(is_on_own(32, 1, 1000)) << "the prompt is in each choice";
}

// Each has all of the memory, and the queue holds none besides it.
TEST_F(EngineThreadTest, ReleasesThePlaceOfEveryTextThatEnds) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(100), .queue = 1});
  for (std::size_t i = 0; i < 6; ++i) {
    const bool leaves = i % 3 == 1, fails = i % 3 == 2;
    gone_ = false;
    auto text = job(i, 100, [this, leaves, fails] {
      if (leaves) gone_ = true;
      if (fails) throw Error("failed");
    });
    text.gone = &gone_;
    ASSERT_NO_THROW(engine.submit(one(std::move(text)))) << i;
    ASSERT_EQ(events_.wait(i + 1).size(), i + 1);
    ASSERT_TRUE(engine.wait_until_idle(20s)) << i;
  }
  EXPECT_EQ(engine.counts().texts, 6u);
  EXPECT_EQ(engine.counts().abandoned, 2u);
}

TEST_F(EngineThreadTest, AcceptsTextsForItsPlacesAndItsQueueAndNoMore) {
  EngineThread& engine = start({.parallel = 2, .kv_memory = bytes_of(1000), .queue = 3});
  engine.submit(one(job(0, 20, [this] { events_.hold(); })));
  events_.wait_until_held();
  for (std::size_t i = 1; i < 5; ++i) ASSERT_NO_THROW(engine.submit(one(job(i, 2)))) << i;
  try {
    engine.submit(one(job(5, 2)));
    ADD_FAILURE() << "a text more than there is room for";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 429) << error.what();
  }
  events_.release();
  EXPECT_EQ(events_.wait(5).size(), 5u);
}

TEST_F(EngineThreadTest, WhatRequestsConsistOfIsLimitedTogether) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 9, .task_memory = 500'000});
  const auto large = [this](std::size_t number) {
    return one(job(number, 2, {}, [](TextTask& task) { task.options.stop.assign(100, std::string(3000, 'x')); }));
  };
  engine.submit(one(job(0, 20, [this] { events_.hold(); })));
  events_.wait_until_held();
  engine.submit(large(1));
  EXPECT_THROW(engine.submit(large(2)), RequestError);
  EXPECT_NO_THROW(engine.submit(one(job(3, 2)))) << "a small one";
  events_.release();
  EXPECT_EQ(events_.wait(3).size(), 3u);
  for (int i = 0; i < 1000 && !engine.is_idle(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_NO_THROW(engine.submit(large(4))) << "what has ended takes none";
  EXPECT_EQ(events_.wait(4).size(), 4u);
}

TEST_F(EngineThreadTest, ATextOfANewRequestIsNotBehindAllTextsOfALargeOne) {
  constexpr std::size_t large = 100;
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 1});
  std::vector<TextJob> jobs;
  jobs.push_back(job(0, 20, [this] { events_.hold(); }));
  for (std::size_t i = 1; i < large; ++i) jobs.push_back(job(i, 2));
  engine.submit(std::move(jobs));
  events_.wait_until_held();
  ASSERT_NO_THROW(engine.submit(one(job(large, 2)))) << "one request waits, not 99";
  events_.release();
  const auto ends = events_.wait(large + 1);
  ASSERT_EQ(ends.size(), large + 1);
  EXPECT_LE(std::ranges::find(ends, large, &Events::End::number) - ends.begin(), 2);
}

TEST_F(EngineThreadTest, TwoLargeRequestsTakeTurns) {
  constexpr std::size_t large = 40;
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 2});
  engine.submit(one(job(0, 20, [this] { events_.hold(); })));
  events_.wait_until_held();
  for (std::size_t request = 0; request < 2; ++request) {
    std::vector<TextJob> jobs;
    for (std::size_t i = 0; i < large; ++i) jobs.push_back(job(1 + request * large + i, 2));
    engine.submit(std::move(jobs));
  }
  events_.release();
  const auto ends = events_.wait(1 + 2 * large);
  ASSERT_EQ(ends.size(), 1 + 2 * large);
  for (std::size_t i = 1; i < ends.size(); i += 2) {
    EXPECT_NE(ends[i].number > large, ends[i + 1].number > large) << i;
  }
}

TEST_F(EngineThreadTest, RefusesALargeRequestNextToAnotherButNotASmallOne) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 9});
  engine.submit(one(job(0, 20, [this] { events_.hold(); })));
  events_.wait_until_held();
  gone_ = true;  // nobody waits for these
  const auto many = [this, task = job(2, 2).task](std::size_t count) {
    std::vector<TextJob> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back({.task = task, .gone = &gone_});
    }
    return jobs;
  };
  engine.submit(many(65'535));  // with the one that runs, as many as there may be
  EXPECT_THROW(engine.submit(many(2)), RequestError);
  EXPECT_NO_THROW(engine.submit(one(job(1, 2))));
  events_.release();
  EXPECT_EQ(events_.wait(2).size(), 2u);
}

// While one small text or another has some of the memory, there is none for a large one.
TEST_F(EngineThreadTest, ATextThatSixteenOthersHavePassedIsNext) {
  constexpr std::size_t small = 6, texts = 60, large_number = 1;
  EngineThread& engine = start({.parallel = 2, .kv_memory = bytes_of(500), .queue = texts});
  std::vector<TextJob> jobs;
  for (std::size_t i = 0; i < texts; ++i) {
    // The first is shorter, so that no two end in one step.
    const std::size_t length = i == 0 ? small / 2 : i == large_number ? 500 : small;
    jobs.push_back(job(i, length));
  }
  engine.submit(std::move(jobs));
  const auto ends = events_.wait(texts);
  ASSERT_EQ(ends.size(), texts);
  const auto large = std::ranges::find(ends, large_number, &Events::End::number);
  EXPECT_EQ(large - ends.begin(), 17) << "the first, and the sixteen that passed it";
}

TEST_F(EngineThreadTest, ReportsTheErrorThatEndsAText) {
  EngineThread& engine = start({.parallel = 3, .kv_memory = bytes_of(1000), .queue = 4});
  const auto nothing_allowed = [](TextTask& task) {
    for (std::size_t id = 0; id < small_model().llm().config.vocab_size; ++id) {
      task.options.sampling.logit_bias.push_back(
          {static_cast<std::int32_t>(id), -std::numeric_limits<double>::infinity()});
    }
  };
  std::vector<TextJob> jobs;
  jobs.push_back(job(0, 5, {}, nothing_allowed));                           // fails in a step
  jobs.push_back(job(1, 5, {}, [](TextTask& task) { task.prompt = {}; }));  // fails at its start
  jobs.push_back(job(2, 5));
  engine.submit(std::move(jobs));
  auto ends = events_.wait(3);
  ASSERT_EQ(ends.size(), 3u);
  std::ranges::sort(ends, {}, &Events::End::number);
  EXPECT_NE(ends[0].error.find("no token is left to sample"), std::string::npos) << ends[0].error;
  EXPECT_NE(ends[1].error.find("the prompt is empty"), std::string::npos) << ends[1].error;
  EXPECT_EQ(ends[2].error, "");
  EXPECT_EQ(ends[2].generated.tokens.size(), 5u);
}

// The one that runs goes on with its weights; one that comes later neither waits for it nor is the replacement delayed.
TEST_F(EngineThreadTest, ReplacesTheWeightsWhileATextRuns) {
  TextModel model(small_arguments(), "");
  engine_.emplace(model, EngineLimits{.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4}, turns_, [] {});
  std::size_t pieces = 0;
  engine_->submit(one(job(0, 800, [&] { pieces++ == 0 ? events_.hold() : void(); })));
  events_.wait_until_held();
  const std::shared_ptr<Model> old = model.llm().model;
  std::vector<std::string> order;
  for (const char* const name : {"first", "second"}) {
    engine_->replace_weights(
        [&model, old, &order, name] {
          order.emplace_back(name);
          model.replace_weights(std::make_shared<Model>(*old));
        },
        [this, &order, name](const std::exception_ptr& error) {
          order.push_back(std::string(name) + " done");
          events_.add({100 + order.size(), {}, message_of(error)});
        });
  }
  engine_->submit(one(job(1, 2)));
  events_.release();
  const auto ends = events_.wait(4);
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_EQ(ends[0].number, 102u) << "the first replacement";
  EXPECT_EQ(ends[1].number, 1u) << "the text that came later";
  EXPECT_EQ(ends[2].number, 0u) << "the text with the old weights";
  EXPECT_EQ(ends[2].generated.tokens.size(), 800u);
  EXPECT_EQ(ends[3].number, 104u) << "the second replacement, which waited for it";
  for (const auto& end : ends) EXPECT_EQ(end.error, "") << end.number;
  EXPECT_EQ(order, (std::vector<std::string>{"first", "first done", "second", "second done"}));
  engine_.reset();
}

TEST_F(EngineThreadTest, ATextThatHasPausedGoesOnWithTheWeightsThatWereReplaced) {
  TextModel model(small_arguments(), "");
  engine_.emplace(model, EngineLimits{.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4}, turns_, [] {});
  std::size_t pieces = 0;
  engine_->submit(one(job(0, 200)));
  engine_->submit(one(job(1, 200, [&] { pieces++ == 0 ? events_.hold() : void(); })));
  events_.wait_until_held();
  engine_->replace_weights([&] { model.replace_weights(std::make_shared<Model>(*model.llm().model)); },
                           [this](const std::exception_ptr& error) {
                             events_.add({2, {}, message_of(error)});
                           });
  events_.release();
  const auto ends = events_.wait(3);
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].number, 2u) << "the replacement";
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(ends[i].generated.tokens.size(), 200u) << ends[i].error;
  }
  engine_.reset();
}

TEST_F(EngineThreadTest, LongStepsWithOldWeightsTakeNoMoreTimeThanThoseWithNewOnes) {
  GenerationArguments arguments = small_arguments();
  arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth";
  arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_texts/tokenizer.json";
  TextModel model(arguments, "");  // so small that its own steps are short on any machine
  engine_.emplace(model, EngineLimits{.parallel = 1, .kv_memory = bytes_of(2000), .queue = 4}, turns_, [] {});
  std::atomic<std::size_t> old_pieces = 0, pieces_at_end = 0;
  engine_->submit(one(job(0, 400, [&] {
    if (old_pieces++ == 0) return events_.hold();
    if (pieces_at_end == 0) std::this_thread::sleep_for(20ms);
  })));
  events_.wait_until_held();
  engine_->replace_weights([&] { model.replace_weights(std::make_shared<Model>(*model.llm().model)); },
                           [this](const std::exception_ptr& error) {
                             events_.add({2, {}, message_of(error)});
                           });
  TextJob with_new_weights = job(1, 200);
  with_new_weights.on_end = [&, on_end = std::move(with_new_weights.on_end)](Generated generated,
                                                                             const std::exception_ptr& error) {
    pieces_at_end = old_pieces.load();
    on_end(std::move(generated), error);
  };
  engine_->submit(one(std::move(with_new_weights)));
  events_.release();
  const auto ends = events_.wait(2);
  ASSERT_GE(ends.size(), 2u) << "the old text may end before this thread looks";
  EXPECT_EQ(ends[1].number, 1u);
  EXPECT_EQ(ends[1].generated.tokens.size(), 200u);
  EXPECT_LT(pieces_at_end, 100u) << "steps in turns would be 200";
  engine_.reset();
}

TEST_F(EngineThreadTest, AReplacementThatFailsLeavesTheWeightsAndSaysWhy) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4});
  engine.replace_weights([] { throw Error("failed"); },
                         [this](const std::exception_ptr& error) {
                           events_.add({7, {}, message_of(error)});
                         });
  engine.submit(one(job(1, 3)));
  const auto ends = events_.wait(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].error, "failed");
  EXPECT_EQ(ends[1].generated.tokens.size(), 3u);
}

// As when the memory is too full for an answer.
TEST_F(EngineThreadTest, AnAnswerToAReplacementThatFailsEndsNoOthers) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4});
  const auto fail = [](const std::exception_ptr&) { throw std::bad_alloc(); };
  engine.replace_weights([] {}, fail);
  engine.run_between_steps([](ContextPool&) {}, fail);
  engine.submit(one(job(1, 3)));
  const auto ends = events_.wait(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].generated.tokens.size(), 3u);
  engine.drain();
  engine.replace_weights([] {}, fail);
}

TEST_F(EngineThreadTest, AClientLeavesPlacesToOthers) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(100), .queue = 7});
  const auto submit = [&](std::size_t number, const std::string& client) {
    engine.submit(one(job(number, 2, [this] { events_.hold(); })), client);
  };
  submit(0, "a");
  events_.wait_until_held();
  for (std::size_t i = 1; i < 7; ++i) submit(i, "a");
  try {
    submit(7, "a");
    ADD_FAILURE() << "was taken";
  } catch (const RequestError& error) {
    EXPECT_EQ(std::string(error.what()),
              "7 requests of this client run or wait already, and the last 1 of 8 places are left to others; try again "
              "later");
  }
  EXPECT_THROW(engine.check_room("a"), RequestError);
  EXPECT_NO_THROW(engine.check_room("")) << "of which nobody knows who they are";
  submit(7, "b");
  EXPECT_TRUE(engine.is_full());
  EXPECT_THROW(engine.check_room("c"), RequestError);
  events_.release();
  EXPECT_EQ(events_.wait(8).size(), 8u);
  while (!engine.is_idle()) std::this_thread::sleep_for(1ms);
  for (std::size_t i = 8; i < 15; ++i) submit(i, "a");
  EXPECT_EQ(events_.wait(15).size(), 15u);
}

TEST_F(EngineThreadTest, AClientMayHaveAllPlacesThatNeedNotWait) {
  EngineThread& engine = start({.parallel = 16, .kv_memory = 16 * bytes_of(2), .queue = 0});
  for (std::size_t i = 0; i < 16; ++i) engine.submit(one(job(i, 2, [this] { events_.hold(); })), "a");
  EXPECT_TRUE(engine.is_full());
  events_.release();
  EXPECT_EQ(events_.wait(16).size(), 16u);
}

TEST_F(EngineThreadTest, RejectsTextsAfterDrainAndEndsTheOthers) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4});
  engine.submit(one(job(0, 20, [this] { events_.hold(); })));
  engine.submit(one(job(1, 3)));
  events_.wait_until_held();
  engine.drain();
  try {
    engine.submit(one(job(2, 3)));
    ADD_FAILURE() << "a text after drain()";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 503) << error.what();
  }
  events_.release();
  const auto ends = events_.wait(2);
  ASSERT_EQ(ends.size(), 2u);
  for (const auto& end : ends) EXPECT_EQ(end.error, "") << end.number;
}

// While a text runs with weights that were replaced, the next ones wait for its end.
TEST_F(EngineThreadTest, WeightsThatWaitHearOfDrainAndOfTheEnd) {
  for (const bool drains : {true, false}) {
    TextModel model(small_arguments(), "");
    Events first_piece, replaced;
    bool is_first = true;
    engine_.emplace(model, EngineLimits{.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4}, turns_, [] {});
    TextJob running = job(0, 800, [&] {
      if (std::exchange(is_first, false)) {
        first_piece.hold();
      } else if (!replaced.now().empty()) {
        replaced.hold();
      }
    });
    running.on_end = nullptr;
    engine_->submit(one(std::move(running)));
    first_piece.wait_until_held();
    for (const std::size_t number : {1u, 2u}) {
      engine_->replace_weights([&] { model.replace_weights(std::make_shared<Model>(*model.llm().model)); },
                               [&replaced, number](const std::exception_ptr& error) {
                                 replaced.add({number, {}, message_of(error)});
                               });
    }
    first_piece.release();
    replaced.wait_until_held();
    if (drains) {
      engine_->drain();
      EXPECT_EQ(replaced.now().size(), 2u) << "before the end of the text";
    }
    std::thread stopper([this] { engine_.reset(); });
    replaced.release();
    stopper.join();
    const auto ends = replaced.now();
    ASSERT_EQ(ends.size(), 2u) << drains;
    EXPECT_EQ(ends[0].error, "") << drains;
    EXPECT_EQ(ends[1].error, "the server is shutting down") << drains;
  }
}

TEST_F(EngineThreadTest, ReportsItsEndToTextsThatRunAndThatWait) {
  EngineThread& engine = start({.parallel = 1, .kv_memory = bytes_of(1000), .queue = 4});
  engine.submit(one(job(0, 500, [this] {
    events_.hold();
    std::this_thread::sleep_for(1ms);  // the text lasts until the engine is told to stop
  })));
  engine.submit(one(job(1, 5)));
  events_.wait_until_held();
  std::thread stopper([this] { engine_.reset(); });
  events_.release();
  stopper.join();
  const auto ends = events_.now();
  ASSERT_EQ(ends.size(), 2u);
  for (const auto& end : ends) EXPECT_EQ(end.error, "the server is shutting down") << end.number;
}

}  // namespace
}  // namespace minimind
