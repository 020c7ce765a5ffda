#include "runtime/engine/profile.h"
#include "runtime/kernels/instruction_sets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "tests/support/golden.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

double total(const ThreadProfile& thread) {
  double seconds = 0;
  for (std::size_t i = 0; i < operation_count; ++i) seconds += thread.seconds(static_cast<Operation>(i));
  return seconds;
}

TEST(ThreadProfile, ChargesTimeToTheCurrentOperation) {
  ThreadProfile thread;
  thread.start();
  thread.enter(Operation::attention);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(thread.enter(Operation::down), Operation::attention);
  EXPECT_GE(thread.seconds(Operation::attention), 5e-3);
  EXPECT_EQ(thread.seconds(Operation::down), 0);
}

TEST(Worker, ChargesWaitingAndReturnsToItsOperation) {
  std::vector<ThreadProfile> profiles(2);
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  run_team(
      2,
      [&](Worker& worker) {
        worker.begin(Operation::down);
        if (worker.index() == 0) sleep();
        worker.barrier();
        if (worker.index() == 1) sleep();
      },
      profiles);
  EXPECT_GE(profiles[0].seconds(Operation::down), 10e-3);
  EXPECT_GE(profiles[1].seconds(Operation::barrier_wait), 5e-3);
  EXPECT_GE(profiles[1].seconds(Operation::down), 10e-3);
}

// Every operation of a MoE model's forward pass, dense ones included, on every thread of the team.
TEST(Profile, AForwardPassChargesEveryOperation) {
  const GoldenCase golden = load_golden("v3-moe");
  const Model model = load_model(open_checkpoint(golden.model_path, {}), std::nullopt, 1);
  for (const std::size_t threads : {1u, 2u}) {
    Profile profile(threads);
    Context context(model.config, 8);
    Forward forward(model, kernels::choose(), threads, 5, 8);
    std::vector<float> logits(model.config.vocab_size);
    const Matrix<float> one_row{logits.data(), 1, logits.size()};
    forward.run(context, std::span(golden.tokens).first(5), one_row);
    context.rewind(0);
    forward.set_profile(&profile);
    forward.run(context, std::span(golden.tokens).first(5), one_row);
    forward.run(context, std::span(golden.tokens).subspan(5, 1), one_row);
    forward.run(context, std::span(golden.tokens).subspan(6, 1), one_row);
    forward.set_profile(nullptr);
    forward.run(context, std::span(golden.tokens).subspan(7, 1), one_row);

    EXPECT_EQ(profile.batched.passes, 1u);
    EXPECT_EQ(profile.batched.tokens, 5u);
    EXPECT_EQ(profile.single.passes, 2u);
    EXPECT_EQ(profile.single.tokens, 2u);
    for (const PassProfile* passes : {&profile.batched, &profile.single}) {
      ASSERT_EQ(passes->threads.size(), threads);
      for (const ThreadProfile& thread : passes->threads) {
        if (&thread != &passes->threads.front() && total(thread) == 0) continue;  // a busy machine gave fewer threads
        for (std::size_t i = 0; i < operation_count; ++i) {
          EXPECT_GT(thread.seconds(static_cast<Operation>(i)), 0) << i;
        }
        EXPECT_LE(total(thread), passes->seconds);
      }
    }
  }
}

TEST(Profile, DoesNotChangeTheLogits) {
  const GoldenCase golden = load_golden("v3-moe");
  const Model model = load_model(open_checkpoint(golden.model_path, {}), std::nullopt, 1);
  Profile profile(2);
  std::vector<std::vector<float>> results;
  for (Profile* with : {static_cast<Profile*>(nullptr), &profile}) {
    Context context(model.config, 8);
    Forward forward(model, kernels::choose(), 2, 8, 8);
    forward.set_profile(with);
    results.emplace_back(8 * model.config.vocab_size);
    forward.run(context, std::span(golden.tokens).first(8), {results.back().data(), 8, model.config.vocab_size});
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace minimind
