#include "runtime/generate/step_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace minimind {
namespace {

struct Machine {
  std::string name;
  std::function<double(const StepWork&)> seconds;
};

// The costs are in steps of a single text, or nearly.
std::function<double(const StepWork&)> sum(double constant, double row, double row_position, double token,
                                           double token_position) {
  return [=](const StepWork& work) {
    return constant + row * static_cast<double>(work.rows) + row_position * static_cast<double>(work.row_positions) +
           token * static_cast<double>(work.tokens) + token_position * static_cast<double>(work.token_positions);
  };
}

double of_register_tiles(const StepWork& work) {
  return 0.3 + 0.7 * std::ceil(static_cast<double>(work.rows + work.tokens) / 8) +
         1e-4 * static_cast<double>(work.row_positions + work.token_positions);
}

double of_more_barriers(const StepWork& work) {
  return sum(1, 0.05, 0, 0.03, 1e-5)(work) + (work.tokens > 0 ? 0.6 : 0);
}

double of_experts(const StepWork& work) {
  const auto rows = static_cast<double>(work.rows + work.tokens);
  return 0.3 + 2 * (1 - std::pow(0.75, rows)) + 0.01 * rows;
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all{{"a row costs nearly a step", sum(0.2, 0.8, 3e-4, 0.8, 3e-4)},
                                        {"a small model", sum(0.5, 0.5, 5e-4, 0.35, 5e-4)},
                                        {"a large model", sum(1, 0.02, 1e-5, 0.01, 2e-6)},
                                        {"attention costs most", sum(1, 0.1, 1e-4, 0.05, 2e-4)},
                                        {"decoding gets slow, too", sum(1, 0, 3e-3, 0.05, 3e-3)},
                                        {"register tiles", of_register_tiles},
                                        {"the first token costs most", of_more_barriers},
                                        {"a mixture of experts", of_experts}};
  return all;
}

// Texts that are decoded while prompts come in without end.
struct Traffic {
  std::size_t texts = 1;
  std::size_t longest_text = 100'000;
  std::size_t prompt_size = 2000;
  std::size_t first_position = 0;  // of prompts: the tokens before it are cached
  double noise = 0;                // of the clock, relative
  std::size_t delayed = 100;       // one step of so many is delayed by another program, if there is noise
};

struct Course {
  double longest = 0;            // step whose tokens could be chosen, times the step without prompts
  double longest_gap = 0;        // between tokens of a text, in medians
  double share = 0;              // of the prompt tokens that fit, a mean over the steps
  std::size_t too_long = 0;      // steps of more than three times the step without prompts
  std::size_t starved = 0;       // steps in a row without prompts
  std::size_t first_tokens = 0;  // of the first step with a prompt
};

StepWork with_prompt(StepWork work, std::size_t position, std::size_t count) {
  if (count > 0) work.add_prompt(position, count);
  return work;
}

// The most tokens whose step takes twice as long as one without any, and 1 otherwise.
std::size_t fitting(const Machine& machine, const StepWork& alone, std::size_t position, std::size_t most) {
  std::size_t count = 1;
  while (count < most && machine.seconds(with_prompt(alone, position, count + 1)) <= 2 * machine.seconds(alone)) {
    ++count;
  }
  return count;
}

// The clock is wrong by a factor, and sometimes another program delays a step. What counts is the time without that.
double measured(double seconds, const Traffic& traffic, std::mt19937& random) {
  if (traffic.noise == 0) return seconds;
  std::normal_distribution<double> normal;
  const double delay = random() % traffic.delayed == 0 ? 1 + static_cast<double>(random() % 5) : 1;
  return seconds * std::exp(traffic.noise * normal(random)) * delay;
}

Course run(const Machine& machine, const Traffic& traffic) {
  struct Text {
    std::size_t position, end;
  };
  std::mt19937 random(5);
  const auto new_text = [&] {
    const std::size_t position = 5 + random() % 30;
    return Text{position, position + 1 + random() % traffic.longest_text};
  };
  constexpr std::size_t steps = 3000, steps_before = 20, max_tokens = 256, max_positions = 3000;
  std::vector<Text> texts;
  for (std::size_t i = 0; i < traffic.texts; ++i) texts.push_back(new_text());
  StepPace pace(2, 768);
  Course course;
  std::vector<double> gaps;
  std::size_t position = traffic.first_position, starved = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    StepWork alone;
    for (const Text& text : texts) alone.add_decoded(text.position, 1);
    std::size_t tokens = 0;
    if (i >= steps_before) {
      const std::size_t most = std::min(max_tokens, traffic.prompt_size - position);
      tokens = pace.tokens(alone, position, most);
      course.share +=
          static_cast<double>(tokens) / static_cast<double>(fitting(machine, alone, position, most) * steps);
      starved = tokens > 0 ? 0 : starved + 1;
      course.starved = std::max(course.starved, starved);
    }
    if (course.first_tokens == 0) course.first_tokens = tokens;
    const StepWork work = with_prompt(alone, position, tokens);
    const double seconds = machine.seconds(work);
    gaps.push_back(seconds);
    pace.learn(work, measured(seconds, traffic, random));
    if (tokens > 1) course.longest = std::max(course.longest, seconds / machine.seconds(alone));
    if (tokens > 1 && seconds > 3 * machine.seconds(alone)) ++course.too_long;
    position += tokens;
    if (position == traffic.prompt_size) position = traffic.first_position;
    for (Text& text : texts) {
      if (++text.position >= std::min(text.end, max_positions)) text = new_text();
    }
  }
  std::ranges::sort(gaps);
  course.longest_gap = gaps.back() / gaps[gaps.size() / 2];
  return course;
}

TEST(StepPace, KeepsTheLongestGapBelowThreeMedians) {
  for (const Machine& machine : machines()) {
    for (const std::size_t texts : {1u, 8u}) {
      for (const double noise : {0.0, 0.1}) {
        const Course course = run(machine, {.texts = texts, .noise = noise});
        EXPECT_LT(course.longest, 3) << machine.name << ", " << texts << " texts, noise " << noise;
        EXPECT_LT(course.longest_gap, 3) << machine.name << ", " << texts << " texts, noise " << noise;
      }
    }
  }
}

TEST(StepPace, KeepsStepsShortWhileTextsComeAndGo) {
  for (const Machine& machine : machines()) {
    for (const double noise : {0.0, 0.1}) {
      EXPECT_LT(run(machine, {.texts = 8, .longest_text = 30, .noise = noise}).longest, 3)
          << machine.name << ", noise " << noise;
      EXPECT_LT(run(machine, {.longest_text = 40, .prompt_size = 300, .noise = noise}).longest, 3)
          << machine.name << ", noise " << noise;
    }
  }
}

TEST(StepPace, KeepsStepsShortAtTheEndOfLongPrompts) {
  for (const Machine& machine : machines()) {
    EXPECT_LT(run(machine, {.first_position = 1900}).longest, 3) << machine.name;
  }
}

TEST(StepPace, UsesMostOfTheTimeThatPromptsMayTake) {
  for (const Machine& machine : machines()) {
    EXPECT_GT(run(machine, {}).share, 0.5) << machine.name;
    EXPECT_GT(run(machine, {.texts = 8}).share, 0.5) << machine.name;
    EXPECT_GT(run(machine, {.texts = 8, .longest_text = 30}).share, 0.5) << machine.name;
    EXPECT_GT(run(machine, {.texts = 8, .longest_text = 30, .noise = 0.1}).share, 0.5) << machine.name;
  }
}

TEST(StepPace, NeverStarvesPrompts) {
  for (const Machine& machine : machines()) {
    for (const double noise : {0.0, 0.1, 1.0}) {
      const Course course = run(machine, {.texts = 8, .longest_text = 30, .noise = noise});
      EXPECT_LE(course.starved, 1u) << machine.name << ", noise " << noise;
    }
  }
}

TEST(StepPace, StartsWithOneToken) {
  for (const Machine& machine : machines()) EXPECT_EQ(run(machine, {}).first_tokens, 1u) << machine.name;
}

TEST(StepPace, FollowsAMachineThatChanges) {
  const auto fast = sum(1, 0, 0, 0.01, 0);
  const auto slow_prompts = sum(1, 0, 0, 0.2, 0), fast_decoding = sum(0.2, 0, 0, 0.01, 0);
  for (const auto& [later, most] : {std::pair(slow_prompts, 7u), std::pair(fast_decoding, 30u)}) {
    StepPace pace(2, 768);
    StepWork alone;
    alone.add_decoded(5, 1);
    std::size_t long_steps = 0, before = 0, after = 0;
    for (int i = 0; i < 400; ++i) {
      const StepWork work = with_prompt(alone, 0, pace.tokens(alone, 0, 256));
      const auto& cost = i < 200 ? fast : later;
      if (cost(work) > 3 * cost(alone)) ++long_steps;
      pace.learn(work, cost(work));
      if (i > 100) (i < 200 ? before : after) = std::max(i < 200 ? before : (i < 300 ? 0 : after), work.tokens);
    }
    EXPECT_GT(before, 60u);
    EXPECT_LE(after, most);
    EXPECT_LE(long_steps, 12u);
  }
}

TEST(StepPace, KeepsMostStepsShortOnABusyMachine) {
  for (const Machine& machine : machines()) {
    const Course course = run(machine, {.noise = 0.1, .delayed = 5});
    EXPECT_GT(course.share, 0.4) << machine.name;
    EXPECT_LT(course.too_long, 40u) << machine.name;
  }
}

TEST(StepPace, CountsSeveralPromptsOfAStepTogether) {
  StepPace pace(2, 768);
  StepWork alone;
  alone.add_decoded(5, 1);
  const auto cost = sum(1, 0, 0, 0.02, 0);
  for (int i = 0; i < 200; ++i) {
    StepWork work = alone;
    for (std::size_t tokens = 1; tokens > 0 && work.tokens < 256;) {
      tokens = pace.tokens(work, 0, 7);
      work = with_prompt(work, 0, tokens);
      if (tokens < 7) break;
    }
    EXPECT_LT(cost(work), 3);
    if (i > 100 && work.tokens > 0) {
      EXPECT_GT(cost(work), 1.5);
    }
    pace.learn(work, cost(work));
  }
}

// The longest of the last steps of a prompt whose tokens take so many seconds each.
double longest_step(PromptLimit& limit, double seconds_per_token) {
  double longest = 0;
  for (int step = 0; step < 40; ++step) {
    const double seconds = 0.002 + seconds_per_token * static_cast<double>(limit.tokens());
    limit.learn(limit.tokens(), seconds);
    if (step >= 20) longest = std::max(longest, seconds);
  }
  return longest;
}

TEST(PromptLimit, KeepsStepsAboutAsLongAsAllowed) {
  for (const double seconds_per_token : {1e-5, 1e-4, 1e-3}) {
    PromptLimit limit(0.03, 8, 128);
    EXPECT_LT(longest_step(limit, seconds_per_token), 0.035) << seconds_per_token;
    EXPECT_GE(limit.tokens(), seconds_per_token < 2e-4 ? 128u : 20u);
  }
}

TEST(PromptLimit, ALongStepOfManyTextsGetsHalfAsManyTokensOfPrompts) {
  PromptLimit limit(0.032, 8, 256);
  for (int i = 0; i < 10; ++i) limit.learn(limit.tokens(128, 4), 0.06);
  EXPECT_EQ(limit.tokens(128, 4), 64u);
  EXPECT_EQ(limit.tokens(4, 4), 8u);
}

TEST(PromptLimit, RecoversFromAStepThatWasHeldUp) {
  PromptLimit limit(0.03, 8, 128);
  limit.learn(128, 10);
  EXPECT_EQ(limit.tokens(), 64u);
  limit.learn(64, 0.01);
  EXPECT_EQ(limit.tokens(), 128u);
}

TEST(PromptLimit, LearnsNothingFromTheShortEndOfAPrompt) {
  PromptLimit limit(0.03, 8, 128);
  limit.learn(3, 0.003);
  limit.learn(0, 1);
  EXPECT_EQ(limit.tokens(), 128u);
  limit.learn(8, 1);
  EXPECT_EQ(limit.tokens(), 8u);
}

}  // namespace
}  // namespace minimind
