#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "runtime/engine/forward.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/step_pace.h"

namespace minimind {

// Generates many texts at once, so that weights are read once for all of them. A step runs one batch: the next token of
// every text whose prompt is done, then tokens of the prompts of the others.
//
// While texts are being decoded, a prompt that needs several steps gets no more tokens per step than keep the step
// within a multiple of a step without prompts, see StepPace: a long prompt never stops the other texts. A prompt that
// one step has room for is short: it runs at once and delays the other texts once. To spread the short prompts of many
// texts that start together would waste most of their time on steps with few texts. Steps with short prompts and steps
// with parts of long ones take turns if there are both, and so do, of several long prompts, the one that was added
// first and the one that has the fewest tokens left: a prompt waits for no longer one. With an infinite limit, prompts
// run in the order in which they were added.
//
// A request with more texts than another one gets no more of them into a step than keep it within the same multiple of
// a step in which each request has as many as the other: its texts take turns.
//
// What may follow constrained texts is worked out before a step, for a short time: a text for which that takes longer
// waits for another step, and the others run.
//
// The bytes of a text depend neither on the others nor on the clock.
class Scheduler {
 public:
  using Clock = std::function<double()>;  // seconds since some moment

  // For up to `max_texts` texts at once, fewer than forward.max_tokens(). A step with parts of long prompts should take
  // at most `longest_step` times as long as one without prompts; infinity is best for the time of all texts together.
  // `forward` must outlive this.
  Scheduler(Forward& forward, std::size_t max_texts, double longest_step = 2, Clock clock = steady_seconds);

  // A text that has ended, and why if it failed: what Generation::take threw, of which the other texts know nothing.
  struct Ended {
    Generation* generation;
    std::exception_ptr error;
  };

  std::size_t texts() const { return texts_.size(); }
  bool full() const { return texts_.size() == max_texts_; }

  // Adds a text of a request, unless full. It must outlive its end, and its context must not be that of another text
  // here.
  void add(Generation& text, std::size_t request = 0);

  // Drops a text that has not ended.
  void remove(Generation& text);

  // Runs one step, with at most `prompt_tokens` of prompts, and returns the texts that have ended. Nothing if there are
  // none.
  std::vector<Ended> step(std::size_t prompt_tokens = SIZE_MAX);

  // What the last step ran.
  const StepWork& work() const { return work_; }

 private:
  struct Text {
    Generation* generation;
    std::size_t request;
    std::size_t last_step;  // in which it was decoded
    bool prepared = false;  // for a step
    std::size_t last_preparation = 0;
    std::exception_ptr error{};  // why it failed before a step
  };
  // A text and what it has in a step.
  struct Share {
    Generation* text;
    Piece piece;
    std::size_t first_row = 0;  // of its logits
    std::exception_ptr error;
  };
  static double steady_seconds();
  void prepare();
  std::vector<Share> choose(std::size_t prompt_tokens);
  std::vector<Text*> texts_to_decode();
  void add_prompts(std::vector<Share>& shares, std::size_t room);
  bool paced() const;
  void take(std::vector<Share>& shares);

  Forward& forward_;
  std::size_t max_texts_;
  double longest_step_;
  Clock clock_;
  std::vector<Text> texts_;    // in the order in which they were added
  std::vector<float> logits_;  // [rows of a step, vocab]
  std::size_t steps_ = 0, preparations_ = 0;
  StepPace pace_;
  StepWork work_;                    // of the step
  bool runs_short_prompts_ = false;  // the step, and no parts of long ones
  bool runs_oldest_prompt_ = false;  // the step, of several long ones
};

}  // namespace minimind
