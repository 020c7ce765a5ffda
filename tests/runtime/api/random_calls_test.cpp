#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/api/minimind.h"
#include "tests/support/c_interface.h"
#include "tests/support/cases.h"
#include "tests/support/golden.h"

namespace minimind {
namespace {

constexpr std::size_t caller_count = 16;

// Models of one shape and different weights, and what each of them writes and computes alone.
struct Weights {
  std::string path;
  std::vector<Tokens> texts;  // after the first n + 1 tokens
  std::vector<float> logits;
  std::vector<double> scores;
};

struct Expected {
  static constexpr std::size_t prompts = 6, max_tokens = 12;

  Expected() {
    tokens = load_golden("v3-dense").tokens;
    for (const char* const name : {"v3-dense", "v3-fp32"}) {
      const GoldenCase golden = load_golden(name);
      const ModelHandle model = open_model(golden.model_path);
      Weights weights{.path = golden.model_path, .texts = {}, .logits = {}, .scores = {}};
      for (std::size_t n = 0; n < prompts; ++n) {
        weights.texts.push_back(run_one(model, greedy_request(prompt(n), max_tokens)).ids);
      }
      weights.logits = logits_of(model, tokens, golden.vocab);
      weights.scores.resize(tokens.size() - 1);
      minimind_score(model.get(), tokens.data(), tokens.size(), weights.scores.data(), weights.scores.size(), nullptr,
                     nullptr);
      all.push_back(std::move(weights));
    }
  }

  Tokens prompt(std::size_t n) const { return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n + 1)}; }

  // Whether any of the weights satisfies the condition.
  template <class Condition>
  bool any(Condition condition) const {
    return std::any_of(all.begin(), all.end(), condition);
  }

  Tokens tokens;
  std::vector<Weights> all;
};

using SharedGeneration = std::shared_ptr<minimind_generation>;

// What all threads use.
struct Shared {
  explicit Shared(const Expected& of) : expected(of) {
    minimind_model_options given = options();
    given.threads = 2;
    given.parallel = 4;
    model = open_model(expected.all[0].path, given);
    for (SessionHandle& session : sessions) session = open_session_of(model, 40);
  }

  const Expected& expected;
  ModelHandle model;
  std::array<SessionHandle, 2> sessions;
  std::mutex mutex;
  std::array<SharedGeneration, caller_count> texts;  // one of each thread, which the others may cancel
};

// One of the threads.
class Caller {
 public:
  Caller(Shared& shared, std::size_t index) : shared_(shared), index_(index), random_(static_cast<unsigned>(index)) {}

  void run(std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) call();
    share(nullptr);
    while (!texts_.empty()) {
      step();
      for (std::size_t i = texts_.size(); i-- > 0;) poll(i);
    }
  }

 private:
  struct Text {
    SharedGeneration generation;
    std::size_t prompt;
    Written written{};
  };

  std::size_t below(std::size_t count) { return random_() % count; }

  void call() {
    switch (below(16)) {
      case 0:
      case 1:
        return submit_text();
      case 2:
        return cancel();
      case 3:
        return drop();
      case 4:
        return reload();
      case 5:
        return check_logits();
      case 6:
        return check_scores();
      case 7:
        return use_session(*shared_.sessions[below(shared_.sessions.size())]);
      case 8:
        return use_own_model();
      case 9:
        return ask();
      default:
        step();
        if (!texts_.empty()) poll(below(texts_.size()));
    }
  }

  void step() { EXPECT_EQ(minimind_step(shared_.model.get(), nullptr), MINIMIND_OK); }

  minimind_status submit_to(minimind_model* model, minimind_session* session) {
    const std::size_t number = below(Expected::prompts);
    const Tokens prompt = shared_.expected.prompt(number);
    minimind_request request = greedy_request(prompt, Expected::max_tokens);
    request.session = session;
    request.held = !session && below(2) == 0;
    minimind_generation* generation = nullptr;
    const minimind_status status = minimind_submit(model, &request, &generation);
    if (status == MINIMIND_OK) texts_.push_back({SharedGeneration(generation, Close()), number});
    return status;
  }

  void submit_text() {
    if (texts_.size() > 4) return drop();
    const bool in_session = below(3) == 0;
    const minimind_status status =
        submit_to(shared_.model.get(), in_session ? shared_.sessions[below(2)].get() : nullptr);
    EXPECT_TRUE(status == MINIMIND_OK || (in_session && status == MINIMIND_BUSY)) << status;
    if (status == MINIMIND_OK) share(texts_.back().generation);
  }

  void share(SharedGeneration text) {
    const std::lock_guard lock(shared_.mutex);
    shared_.texts[index_] = std::move(text);
  }

  // Cancels the text of any thread.
  void cancel() {
    SharedGeneration text;
    {
      const std::lock_guard lock(shared_.mutex);
      text = shared_.texts[below(caller_count)];
    }
    if (text) minimind_cancel(text.get());
  }

  void poll(std::size_t i) {
    Text& text = texts_[i];
    minimind_output output;
    output.size = sizeof output;
    ASSERT_EQ(minimind_poll(text.generation.get(), &output), MINIMIND_OK);
    Tokens& ids = text.written.ids;
    ids.insert(ids.end(), output.ids, output.ids + output.id_count);
    if (output.finish == MINIMIND_RUNNING) return;
    EXPECT_TRUE(output.finish == MINIMIND_CANCELLED || ids.size() == Expected::max_tokens);
    EXPECT_TRUE(shared_.expected.any([&](const Weights& weights) {
      const Tokens& whole = weights.texts[text.prompt];
      return ids.size() <= whole.size() && std::equal(ids.begin(), ids.end(), whole.begin());
    }));
    texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void drop() {
    if (!texts_.empty()) texts_.erase(texts_.begin());
  }

  void reload() {
    const std::string& path = shared_.expected.all[below(shared_.expected.all.size())].path;
    const minimind_status status = minimind_reload(shared_.model.get(), path.c_str());
    EXPECT_TRUE(status == MINIMIND_OK || status == MINIMIND_BUSY) << minimind_model_error(shared_.model.get());
  }

  void check_logits() {
    const Tokens& ids = shared_.expected.tokens;
    std::vector<float> logits(shared_.expected.all[0].logits.size());
    EXPECT_EQ(
        minimind_logits(shared_.model.get(), ids.data(), ids.size(), logits.data(), logits.size(), nullptr, nullptr),
        MINIMIND_OK);
    EXPECT_TRUE(shared_.expected.any([&](const Weights& weights) { return weights.logits == logits; }));
  }

  void check_scores() {
    const Tokens& ids = shared_.expected.tokens;
    std::vector<double> scores(ids.size() - 1);
    EXPECT_EQ(
        minimind_score(shared_.model.get(), ids.data(), ids.size(), scores.data(), scores.size(), nullptr, nullptr),
        MINIMIND_OK);
    EXPECT_TRUE(shared_.expected.any([&](const Weights& weights) { return weights.scores == scores; }));
  }

  void use_session(minimind_session& session) {
    const Tokens& ids = shared_.expected.tokens;
    std::size_t count = 0;
    Tokens kept(40);
    const auto may_be_busy = [](minimind_status status) {
      EXPECT_TRUE(status == MINIMIND_OK || status == MINIMIND_BUSY) << status;
      return status == MINIMIND_OK;
    };
    if (may_be_busy(minimind_session_rewind(&session, 0))) {
      std::vector<float> logits(shared_.expected.all[0].logits.size() / ids.size());
      const minimind_status status = minimind_session_run(&session, ids.data(), 3, 1, logits.data(), logits.size());
      // Another thread may have used the room meanwhile.
      EXPECT_TRUE(status == MINIMIND_OK || status == MINIMIND_BUSY || status == MINIMIND_BAD_INPUT) << status;
    }
    EXPECT_EQ(minimind_session_ids(&session, kept.data(), kept.size(), &count), MINIMIND_OK);
    EXPECT_LE(count, kept.size());
  }

  // Opens a model and closes it while a text of it is left.
  void use_own_model() {
    const ModelHandle own = open_model(shared_.expected.all[below(2)].path);
    const std::size_t before = texts_.size();
    EXPECT_EQ(submit_to(own.get(), nullptr), MINIMIND_OK);
    EXPECT_EQ(minimind_step(own.get(), nullptr), MINIMIND_OK);
    texts_.resize(before);
  }

  // Calls that compute nothing, and one that fails: its message is that of this thread.
  void ask() {
    minimind_facts facts;
    facts.size = sizeof facts;
    EXPECT_EQ(minimind_get_facts(shared_.model.get(), &facts), MINIMIND_OK);
    EXPECT_EQ(facts.vocab_size * shared_.expected.tokens.size(), shared_.expected.all[0].logits.size());
    const std::string missing = "/nowhere/" + std::to_string(index_);
    const minimind_status status = minimind_reload(shared_.model.get(), missing.c_str());
    EXPECT_TRUE(status == MINIMIND_NOT_FOUND || status == MINIMIND_BUSY) << status;
    const std::string expected = status == MINIMIND_BUSY ? " texts are being written" : missing;
    EXPECT_NE(std::string(minimind_model_error(shared_.model.get())).find(expected), std::string::npos);
    std::size_t count = 0;
    EXPECT_EQ(minimind_encode(shared_.model.get(), "a", 1, MINIMIND_ENCODE_TEXT, nullptr, 0, &count),
              MINIMIND_NO_TOKENIZER);
  }

  Shared& shared_;
  const std::size_t index_;
  std::mt19937 random_;
  std::vector<Text> texts_;
};

TEST(CInterface, KeepsItsPromisesUnderRandomCallsOf16Threads) {
  const Expected expected;
  ASSERT_NE(expected.all[0].logits, expected.all[1].logits);
  Shared shared(expected);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < caller_count; ++i) {
    threads.emplace_back([&shared, i] { Caller(shared, i).run(cases(60)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace minimind
