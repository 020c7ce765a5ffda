#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/generate/context_pool.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/scheduler.h"
#include "runtime/llm/llm.h"

namespace minimind {

// A text to generate: what Generation takes.
struct GenerationTask {
  std::vector<std::int32_t> prompt{};
  GenerateOptions options{};
  std::size_t capacity = 0;  // of its context

  // The part of the prompt that need not be computed again if another text had it: nothing if it is to be scored.
  std::span<const std::int32_t> reusable() const {
    return options.scores && options.score_prompt ? std::span<const std::int32_t>() : prompt;
  }
};

// A task for the queue, with the functions that get what becomes of it. They are called while a step runs, on_text on
// any of the engine's threads, but for each text one at a time.
struct TextJob {
  std::shared_ptr<const GenerationTask> task;
  // Once true, nobody waits for the text any more. Must outlive the job; null: never.
  const std::atomic<bool>* gone = nullptr;
  // While true, nobody reads what has come of the text: TextQueue says what that means. Must outlive the job; null:
  // never.
  const std::atomic<bool>* behind = nullptr;
  // Gets each piece of text. The generation shows the scores of the tokens so far.
  std::function<void(std::string_view, const Generation&)> on_text{};
  // Called when the prompt has been computed.
  std::function<void()> on_first_token{};
  // Called when the text goes on after it has waited to be read.
  std::function<void()> on_read{};
  // Gets the end, once: the result, which is interrupted if nobody waits for it, or what Generation threw.
  std::function<void(Generated, std::exception_ptr)> on_end{};
  // Tokens of the prompt that are written at the end, once for each time: part of the work of on_end.
  std::size_t prompt_values = 0;
  // The context that the text uses, and which must outlive it; null: one of the queue's.
  Context* context = nullptr;
};

struct TextQueueLimits {
  std::size_t parallel;                   // texts at once, fewer than step_tokens
  std::size_t kv_memory;                  // bytes of keys and values
  std::size_t step_tokens;                // that a step runs at most
  double longest_step;                    // as Scheduler has it
  bool in_order = false;                  // texts start in the order in which they came, whatever they have to wait for
  std::ptrdiff_t most_idle = 512;         // contexts that stay for later prompts
  std::size_t most_compared = 2'000'000;  // tokens in a start(), as ContextPool counts them: some milliseconds
};

// The texts that a model writes together. One thread at a time.
//
// Requests take turns: as many texts of a new request start as of one that came before it, from then on. Otherwise
// texts start in the order in which they came, except that they pass those that wait for a prefix which another text
// computes, and up to sixteen pass one that waits for memory.
//
// Nobody keeps all others out. While there is no place for a text, the latest text of the request that has the most
// places pauses, if it has two more, or the text that has had its place for the longest time, if that were 32 steps and
// its request has more places; what has paused goes on in a place that it gets in the same way. Texts that are new come
// before it, but after 64 steps every second place is its. All texts of a request but its first leave a fourth of the
// memory. Once a text came that needs at most 1/32 of it, all that need more leave 1/16 while others run: small texts
// pass those that wait for memory, as long as they take no more than that together.
//
// A text that is not read waits to be: it does not start, or it pauses after its first token. But while others wait for
// memory, or for the ends of texts (hurry), a few of those that wait to be read go on, as only a text's end sets its
// memory free.
class TextQueue {
 public:
  // `llm` must outlive this.
  TextQueue(const LLM& llm, const TextQueueLimits& limits);
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;

  Forward& forward() { return forward_; }
  ContextPool& pool() { return pool_; }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }
  std::size_t texts() const { return waiting_.size() + running_.size() + ended_.size(); }
  // Whether compute() has something to do after start(): if not, all texts wait to be read.
  bool can_compute() const { return scheduler_.texts() > 0; }

  // Adds the texts of a request.
  void submit(std::vector<TextJob> jobs);

  // Runs one step of all texts. What it consists of can also be called one by one, in this order:
  void step();
  // ends the texts that wait or pause and that nobody waits for; those that run end by themselves;
  void end_gone();
  // starts the texts that there is a place and memory for, but those that have paused get free places first; one that
  // can never run ends with its error;
  void start();
  // computes a token of each text, or at most `prompt_tokens` of prompts;
  void compute(std::size_t prompt_tokens = SIZE_MAX);
  // calls on_end of the texts that have ended.
  void report();

  // What compute() ran last.
  const StepWork& work() const { return scheduler_.work(); }

  // Whether others wait for the ends of the texts here, from now on.
  void hurry(bool hurries) { hurries_ = hurries; }

  // Takes over the texts that wait in another queue, and waits for the ends of the others.
  void take_waiting(TextQueue& from);

  // Ends the texts that run or wait with an error.
  void end_running(const std::exception_ptr& error);
  void end_waiting(const std::exception_ptr& error);

  // The generation of a task, while it runs; null otherwise.
  const Generation* running(const GenerationTask& task) const;

  // Drops the text of a task, if it is here, and calls none of its functions.
  void remove(const GenerationTask& task);

 private:
  enum class Start { done, waits_for_prefix, waits_for_memory };
  struct Text {
    Text(TextJob with, std::size_t of_request, std::size_t at) : job(std::move(with)), request(of_request), turn(at) {}

    TextJob job;
    std::size_t request;     // that it is of
    std::size_t turn;        // texts start in this order
    std::size_t number = 0;  // of those that started
    std::size_t passed = 0;  // texts that came later and started earlier
    std::size_t since = 0;   // the step in which it got or lost its place
    Context* context = nullptr;
    std::unique_ptr<Generation> generation{};
    bool has_begun = false;   // its first token is there
    bool paused = false;      // it has no place
    bool can_forget = false;  // its constraint has not given up memory since then
    bool waits_to_be_read = false;
    bool was_unread = false;  // since it last got a place
    std::exception_ptr error{};
    Start found = Start::done;  // why it did not start when it was last looked at
    std::size_t skips = 0;      // calls of start() that need not look at it again
  };
  void resume_if(const std::function<bool(const Text&)>& may_resume);
  void pause_unread();
  bool lacks_memory() const;
  std::size_t unread_that_may_start() const;
  void start_waiting();
  void resume_longest();
  std::map<std::size_t, std::size_t> places() const;  // that each request has
  bool has_place(const Text& waiting) const { return !scheduler_.full() || text_to_pause(waiting); }
  Text* text_to_pause(const Text& waiting) const;
  void give_place(Text& text);
  void pause(Text& text);
  void forget();
  std::size_t bytes_of(const Text& text) const;
  bool is_small(const Text& text) const { return bytes_of(text) <= memory_of_small_ / 2; }
  bool may_pass_all(const Text& text) const;
  std::size_t memory_to_leave(const Text& text) const;
  Start look_at(Text& text);
  Start start(Text& text);
  void release(Text& text);
  void end(Text& text);

  const LLM& llm_;
  const std::shared_ptr<const Model> model_;  // also after that of `llm_` was replaced
  const bool in_order_;
  const std::size_t kv_memory_;
  const std::size_t spare_memory_;     // that all texts of a request but its first leave
  const std::size_t memory_of_small_;  // that texts leave which are not small
  const std::size_t most_compared_;
  Forward forward_;
  Scheduler scheduler_;
  ContextPool pool_;
  std::deque<std::unique_ptr<Text>> waiting_;  // by their turns
  std::vector<std::unique_ptr<Text>> running_, ended_;
  std::vector<Text*> placed_;                     // those of running_ that have places, by their numbers
  bool new_took_last_ = false;                    // whether the last place went to a text that is new
  std::vector<std::unique_ptr<Generation>> old_;  // of texts that ended: they may have much memory to free
  bool has_small_ = false;                        // since a small text came
  bool hurries_ = false;
  std::size_t requests_ = 0, starts_ = 0;
  std::size_t steps_ = 0;
  std::size_t turn_ = 0;  // the latest of those that started
};

}  // namespace minimind
