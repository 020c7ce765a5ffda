#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/generate/context_pool.h"
#include "runtime/generate/step_pace.h"
#include "runtime/llm/text_queue.h"
#include "tools/openai/text_model.h"
#include "tools/serve/metrics.h"
#include "tools/serve/task_thread.h"

namespace minimind {

// Lets the engines of several models take turns, in the order in which they ask: all of them use every core.
class StepTurns {
 public:
  void take() {
    std::unique_lock lock(mutex_);
    const std::uint64_t own = next_++;
    changed_.wait(lock, [&] { return serving_ == own; });
  }
  void give() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

// A turn, as long as this lives.
class StepTurn {
 public:
  explicit StepTurn(StepTurns& turns) : turns_(turns) { turns_.take(); }
  StepTurn(const StepTurn&) = delete;
  StepTurn& operator=(const StepTurn&) = delete;
  ~StepTurn() { turns_.give(); }

 private:
  StepTurns& turns_;
};

// Bytes of a request that is accepted whatever others take.
inline constexpr std::size_t small_request = std::size_t{64} << 10;

// Once requests wait, those that a known client may have for each place that is still free.
inline constexpr std::size_t most_for_each_free = 7;

struct EngineLimits {
  std::size_t parallel;                             // texts at once
  std::size_t kv_memory;                            // bytes of keys and values
  std::size_t queue;                                // requests that wait
  std::size_t task_memory = 2 * most_copied_bytes;  // bytes that the requests which run or wait consist of
};

// The one thread that runs a model and its TextQueue, for texts of any other thread. It runs steps while there are
// texts, and sleeps while there are none. The functions of a job are called on threads of the engine, and must return
// soon.
class EngineThread {
 public:
  // `model` and `turns` must outlive this. `on_idle` is called on a thread of the engine when the last text has ended.
  EngineThread(const TextModel& model, const EngineLimits& limits, StepTurns& turns, std::function<void()> on_idle);
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  // Interrupts all texts, whose ends are still reported.
  ~EngineThread();

  // Adds the texts of a request of a client; empty: unknown. Throws RequestError as check_room() does, if the memory
  // for keys and values is too small for one of them, or if they and all that wait would be too many texts.
  void submit(std::vector<TextJob> jobs, const std::string& client = "");

  // Throws RequestError if submit() would reject any request of this client, so that what it consists of need not be
  // worked out: if the queue is full, after drain(), or if a known client has so many requests that the places which
  // are still free are left to others.
  void check_room(const std::string& client) const;

  // Rejects new texts from now on. The others come to their end.
  void drain();

  // Interrupts all texts, whose ends are still reported, and rejects new ones. Returns at once.
  void stop();

  // Returns true if another request would be rejected because too many wait.
  bool is_full() const;

  // Returns true if there are no texts.
  bool is_idle() const;

  // Waits until there are no texts, at most so long. Returns true if there are none.
  bool wait_until_idle(std::chrono::duration<double> longest);

  // Says that something waits for the ends of texts: for a tenth of a second the queue hurries, as it does while
  // another request has no room, and when the engine drains.
  void hurry();

  // Runs `action` on the engine's thread between two steps, and then done() there, with an error if the action threw
  // it. Returns at once. If the engine stops before, done() gets an error, maybe on this thread.
  using Action = std::function<void(ContextPool&)>;
  using Done = std::function<void(std::exception_ptr)>;
  void run_between_steps(Action action, Done done);
  // The same for other threads than the engine's, but returns when it has run, or throws the error.
  void run_between_steps(Action action);

  // Calls replace() on the engine's thread between two steps: it replaces the weights of the model. Texts that run end
  // with the old ones, which take their memory until then; texts that wait get the new ones. If some still run with
  // weights that were replaced before, replace() waits for their ends. Then calls done(), with an error if the engine
  // stops or drains first. Returns at once.
  void replace_weights(std::function<void()> replace, Done done);

  // Returns true while new weights wait for the ends of texts.
  bool waits_to_replace() const;

  EngineCounts counts() const;

  using Clock = std::chrono::steady_clock;
  // Returns for how long the engine has had texts or an action and has neither ended nor started a step; zero if it has
  // nothing to do.
  Clock::duration silent_for() const;

 private:
  using OnEnd = decltype(TextJob::on_end);
  // Of a request, guarded by mutex_: the texts whose ends have not been reported, those that are still computed, and
  // the work of the others: work_of().
  struct RequestEnd {
    std::size_t texts, computed = texts, work = 0, bytes = 0;
    std::string client{};
  };
  void count_end_of(TextJob& job, const std::shared_ptr<RequestEnd>& request);
  void end_elsewhere(std::function<void()> end, const std::shared_ptr<const RequestEnd>& request);
  void end_text(OnEnd on_end, Generated generated, const std::exception_ptr& error, RequestEnd& request);
  void run();
  bool take_work(bool can_compute);
  void note_arrivals();
  bool step();
  double step(TextQueue& queue);
  void run_actions(const std::exception_ptr& error);
  void replace_next();
  void refuse_replacements();
  // What the engine's thread does between two steps, and what it calls then.
  struct Task {
    Action action;
    Done done;
    void end(const std::exception_ptr& error) noexcept;
  };
  void post(Task task, std::deque<Task>& to, const bool& refuses);
  std::unique_ptr<TextQueue> new_queue() const;
  // With mutex_ locked:
  bool has_work() const { return texts_ > 0 || !actions_.empty() || !replacements_.empty(); }
  void require_room(const std::string& client) const;
  std::size_t places() const { return limits_.parallel + limits_.queue; }
  bool has_no_room() const { return requests_ >= places(); }
  void note_load();

  const EngineLimits limits_;
  StepTurns& turns_;
  const std::function<void()> on_idle_;
  const TextModel& model_;
  // Of the engine's thread.
  std::unique_ptr<TextQueue> queue_;
  std::unique_ptr<TextQueue> old_queue_;  // of texts with weights that were replaced
  double lead_ = 0;  // seconds that queue_ has computed for longer than old_queue_, while both have texts
  PromptLimit prompt_limit_;
  std::array<Clock::time_point, 2> arrivals_{};  // of the last two requests
  bool others_come_ = false;                     // beside the latest of them

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_, idle_;
  std::vector<std::vector<TextJob>> submitted_;  // by requests
  std::deque<Task> actions_, replacements_;
  std::size_t texts_ = 0, requests_ = 0, bytes_ = 0;  // submitted and not ended
  std::map<std::string, std::size_t> requests_of_;    // the same by clients
  bool draining_ = false, stopping_ = false;
  Clock::time_point hurries_until_{};
  Clock::time_point progress_ =
      Clock::now();  // when work came to an engine that had none, and at each turn of its loop
  EngineCounts counts_;

  // Report the ends of texts that are so much work that others would wait while an answer is made of them: the first
  // those that the second would be kept from others by. The second gives them to the first, and so ends before it.
  TaskThread huge_ends_, large_ends_;
  std::thread thread_;
};

}  // namespace minimind
