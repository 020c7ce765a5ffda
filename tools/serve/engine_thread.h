#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/generate/context_pool.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/scheduler.h"
#include "tools/openai/text_model.h"
#include "tools/serve/engine_counts.h"
#include "tools/serve/prompt_limit.h"
#include "tools/serve/step_turns.h"

namespace minimind {

// A text for the engine, with the functions that get what becomes of it. They run on threads of the engine, one at a
// time for each text, and must return soon.
struct TextJob {
  std::shared_ptr<const TextTask> task;
  // Once true, nobody waits for the text any more. Must outlive the job; null: never.
  const std::atomic<bool>* gone = nullptr;
  // Gets each piece of text. The generation shows the scores of the tokens so far.
  std::function<void(std::string_view, const Generation&)> on_text{};
  // Gets the end, once: the result, which is interrupted if the client is gone, or what Generation::take threw.
  std::function<void(Generated, std::exception_ptr)> on_end{};
};

struct EngineLimits {
  std::size_t parallel;   // texts at once
  std::size_t kv_memory;  // bytes of keys and values
  std::size_t queue;      // requests that wait
};

// The one thread that runs a model, for texts of any other thread. It runs steps of all texts together while there are
// any, and sleeps while there are none. Requests take turns: as many texts of a new request start as of one that came
// before it, from then on. Otherwise texts start in the order in which they came, except that a text may pass others
// that wait for memory or for a prefix.
class EngineThread {
 public:
  // `model` and `turns` must outlive this. `on_idle` is called on the engine's thread when the last text has ended.
  EngineThread(const TextModel& model, const EngineLimits& limits, StepTurns& turns, std::function<void()> on_idle);
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  // Interrupts all texts, whose ends are still reported.
  ~EngineThread();

  // Adds the texts of a request. Throws RequestError if the queue is full, after drain(), if the memory for keys and
  // values is too small for one of them, or if they and all that wait would be too many texts.
  void submit(std::vector<std::unique_ptr<TextJob>> jobs);

  // Rejects new texts from now on. The others come to their end.
  void drain();

  // Returns true if there are no texts.
  bool is_idle() const;

  // Waits until there are no texts, at most so long. Returns true if there are none.
  bool wait_until_idle(std::chrono::duration<double> longest);

  // Runs `action` on the engine's thread between two steps: when no text runs if `alone`, before any text that waits.
  // Returns when it has run; passes on what it threw.
  using Action = std::function<void(ContextPool&)>;
  void run_between_steps(const Action& action, bool alone);

  EngineCounts counts() const;

  using Clock = std::chrono::steady_clock;
  // Returns for how long the engine has had texts or an action and has neither ended nor started a step; zero if it has
  // nothing to do.
  Clock::duration silent_for() const;

 private:
  struct Running {
    std::unique_ptr<TextJob> job;
    Context* context = nullptr;
    std::unique_ptr<Generation> generation{};
    Clock::time_point submitted{};
    bool has_started = false;                         // its first token is there
    std::size_t passed = 0;                           // texts that came later and started earlier
    std::size_t turn = 0;                             // texts start in this order
    std::shared_ptr<std::size_t> texts_of_request{};  // that have not ended; guarded by mutex_
  };

  void run();
  bool take_work(const std::function<void()>& after_rest);
  void add_submitted();  // with mutex_ locked
  void end_abandoned();
  void start_waiting();
  bool start(Running& text);
  void step();
  void end_all(const std::exception_ptr& error);
  void end(Running& text, std::exception_ptr error);
  // With mutex_ locked:
  bool has_work() const { return texts_ > 0 || action_; }
  void note_load();
  void note_first_token(Running& text);
  bool run_action();

  const TextModel& model_;
  const EngineLimits limits_;
  StepTurns& turns_;
  const std::function<void()> on_idle_;
  Forward forward_;
  Scheduler scheduler_;
  PromptLimit prompt_limit_;
  ContextPool pool_;
  // Of the engine's thread.
  std::deque<Running> waiting_;  // by their turns
  std::size_t turn_ = 0;         // the latest of those that started
  std::vector<std::unique_ptr<Running>> running_;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_, idle_;
  std::vector<Running> submitted_;
  const Action* action_ = nullptr;
  bool action_is_alone_ = false;
  std::exception_ptr action_error_;
  std::size_t texts_ = 0, requests_ = 0;  // submitted and not ended
  bool draining_ = false;
  Clock::time_point progress_ =
      Clock::now();  // when work came to an engine that had none, and at each turn of its loop
  EngineCounts counts_;

  std::thread thread_;
};

}  // namespace minimind
