#include "tools/serve/engine_thread.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "runtime/engine/thread_team.h"
#include "tools/openai/request_error.h"
#include "tools/serve/task_thread.h"

namespace minimind {
namespace {

// A text that this many others have passed is next.
constexpr std::size_t most_passed = 16;

// Of requests with several: what waits takes memory.
constexpr std::size_t most_texts = 65536;

// Tokens that a step runs at most.
std::size_t step_tokens(const EngineLimits& limits) {
  return std::max<std::size_t>(batch_tokens / 2, limits.parallel + 1);
}

// Seconds of a step with prompts: a client that is gone is to be noticed within 50 ms.
constexpr double longest_prompt_step = 0.032;
constexpr std::size_t least_prompt_tokens = 8;

const std::atomic<bool> never = false;

// An engine without texts for so long ends its threads but one, because another engine may run.
constexpr std::chrono::seconds longest_rest{1};

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

// Gives each thread of the engine one of the cores if it uses all of them. The scheduler of the system otherwise tends
// to wake a thread on the core of the thread that wakes it, where both then wait for each other.
void spread_threads(std::size_t threads, const std::vector<int>& cores) {
  if (cores.size() != threads) return;
  run_team(threads, [&](Worker& worker) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[worker.index()], &own);
    sched_setaffinity(0, sizeof own, &own);
  });
}

std::exception_ptr shutting_down() {
  return std::make_exception_ptr(RequestError("the server is shutting down", "", "unavailable"));
}

bool is_gone(const TextJob& job) {
  return job.gone && *job.gone;
}

}  // namespace

EngineThread::EngineThread(const TextModel& model, const EngineLimits& limits, StepTurns& turns,
                           std::function<void()> on_idle)
    : model_(model),
      limits_(limits),
      turns_(turns),
      on_idle_(std::move(on_idle)),
      forward_(model.engine().forward(step_tokens(limits), model.positions())),
      scheduler_(forward_, limits.parallel),
      prompt_limit_(longest_prompt_step, least_prompt_tokens, forward_.max_tokens()),
      pool_(model.engine().model.config, model.engine().kv_type, limits.kv_memory) {
  counts_.kv_budget = limits.kv_memory;
  thread_ = thread_without_signals([this] { run(); });
}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EngineThread::submit(std::vector<std::unique_ptr<TextJob>> jobs) {
  for (const auto& job : jobs) {
    const std::size_t bytes =
        job->task->capacity * KvCache::bytes_per_position(model_.engine().model.config, model_.engine().kv_type);
    if (bytes <= limits_.kv_memory) continue;
    throw RequestError(
        fmt::format("prompt and answer of up to {} tokens need {:.1f} MB for keys and values, but all texts together "
                    "may take {:.1f} MB; give a smaller max_tokens",
                    job->task->capacity, 1e-6 * static_cast<double>(bytes),
                    1e-6 * static_cast<double>(limits_.kv_memory)),
        "max_tokens", "context_length_exceeded");
  }
  {
    const std::lock_guard lock(mutex_);
    if (draining_) std::rethrow_exception(shutting_down());
    if (requests_ >= limits_.parallel + limits_.queue) {
      throw RequestError(fmt::format("{} requests are waiting already, expected fewer than {}; try again later",
                                     requests_ - std::min(requests_, limits_.parallel), limits_.queue),
                         "", "queue_full");
    }
    if (jobs.size() > 1 && texts_ + jobs.size() > most_texts) {
      throw RequestError(fmt::format("{} texts are running or waiting already, expected at most {} with the {} of this "
                                     "request; try again later, or ask for fewer",
                                     texts_, most_texts, jobs.size()),
                         "", "queue_full");
    }
    const auto now = Clock::now();
    if (!has_work()) progress_ = now;
    texts_ += jobs.size();
    requests_ += jobs.empty() ? 0 : 1;
    const auto texts_of_request = std::make_shared<std::size_t>(jobs.size());
    std::size_t turn = 0;
    for (auto& job : jobs) {
      submitted_.push_back(
          {.job = std::move(job), .submitted = now, .turn = turn++, .texts_of_request = texts_of_request});
    }
  }
  wake_.notify_one();
}

void EngineThread::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool EngineThread::is_idle() const {
  const std::lock_guard lock(mutex_);
  return texts_ == 0;
}

bool EngineThread::wait_until_idle(std::chrono::duration<double> longest) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, longest, [this] { return texts_ == 0; });
}

void EngineThread::run_between_steps(const Action& action, bool alone) {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !action_; });  // that of another thread
  if (stopping_) std::rethrow_exception(shutting_down());
  if (!has_work()) progress_ = Clock::now();
  action_ = &action;
  action_is_alone_ = alone;
  action_error_ = nullptr;
  wake_.notify_one();
  idle_.wait(lock, [&] { return action_ != &action; });
  if (action_error_) std::rethrow_exception(std::exchange(action_error_, nullptr));
}

EngineThread::Clock::duration EngineThread::silent_for() const {
  const std::lock_guard lock(mutex_);
  return has_work() ? Clock::now() - progress_ : Clock::duration::zero();
}

EngineCounts EngineThread::counts() const {
  const std::lock_guard lock(mutex_);
  EngineCounts counts = counts_;
  counts.waiting += submitted_.size();
  return counts;
}

void EngineThread::run() {
  const std::vector<int> cores = allowed_cores();  // before this thread has one core
  spread_threads(forward_.threads(), cores);
  while (take_work([&] { spread_threads(forward_.threads(), cores); })) {
    end_abandoned();
    if (!run_action()) start_waiting();
    step();
  }
  for (Running& text : waiting_) end(text, shutting_down());
  const std::lock_guard lock(mutex_);
  if (action_) action_error_ = shutting_down();
  action_ = nullptr;
  idle_.notify_all();
}

// Sleeps until there is something to do; calls `after_rest` if the team has ended meanwhile. Returns false if the
// engine stops and nothing runs.
bool EngineThread::take_work(const std::function<void()>& after_rest) {
  std::unique_lock lock(mutex_);
  note_load();
  const auto has_work = [this] {
    return stopping_ || action_ || !submitted_.empty() || !waiting_.empty() || !running_.empty();
  };
  if (!wake_.wait_for(lock, longest_rest, has_work)) {
    end_team();
    wake_.wait(lock, has_work);
    lock.unlock();
    after_rest();
    lock.lock();
  }
  progress_ = Clock::now();
  add_submitted();
  return !stopping_ || !running_.empty();
}

void EngineThread::add_submitted() {
  const auto before = static_cast<std::ptrdiff_t>(waiting_.size());
  for (Running& text : submitted_) {
    text.turn += turn_;
    waiting_.push_back(std::move(text));
  }
  submitted_.clear();
  std::ranges::stable_sort(waiting_.begin() + before, waiting_.end(), {}, &Running::turn);
  std::ranges::inplace_merge(waiting_, waiting_.begin() + before, {}, &Running::turn);
}

// Drops waiting texts that nobody waits for. Those that run end by themselves.
void EngineThread::end_abandoned() {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (!is_gone(*waiting_[i].job)) {
      ++i;
      continue;
    }
    Running text = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    end(text, nullptr);
  }
}

void EngineThread::start_waiting() {
  std::size_t still_waiting = 0;
  const std::size_t running = running_.size();
  while (still_waiting < waiting_.size() && !scheduler_.full() && !stopping_) {
    auto text = std::make_unique<Running>(std::move(waiting_[still_waiting]));
    if (!start(*text)) {
      waiting_[still_waiting] = std::move(*text);
      if (waiting_[still_waiting].passed >= most_passed) break;
      ++still_waiting;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(still_waiting));
    for (std::size_t i = 0; i < still_waiting; ++i) ++waiting_[i].passed;
    turn_ = std::max(turn_, text->turn);
    if (text->generation) running_.push_back(std::move(text));
  }
  if (running_.size() == running) return;
  const std::lock_guard lock(mutex_);
  note_load();
}

// Returns false if the text has to wait. One that can never run ends with its error.
bool EngineThread::start(Running& text) {
  const TextTask& task = *text.job->task;
  try {
    text.context = pool_.acquire(task.reusable(), task.capacity);
    if (!text.context) return false;
    const std::atomic<bool>& gone = text.job->gone ? *text.job->gone : never;
    text.generation = std::make_unique<Generation>(
        model_.engine().model, *text.context, &model_.tokenizer(), task.prompt, task.options,
        [&job = *text.job, &text](std::string_view piece) {
          if (job.on_text) job.on_text(piece, *text.generation);
        },
        gone);
    scheduler_.add(*text.generation);
  } catch (...) {
    text.generation.reset();
    end(text, std::current_exception());
  }
  return true;
}

void EngineThread::step() {
  if (running_.empty()) return;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto start = Clock::now();
  std::vector<Scheduler::Ended> ended;
  try {
    const StepTurn turn(turns_);
    const auto turn_start = Clock::now();
    if (!stopping_) ended = scheduler_.step(prompt_limit_.tokens());
    prompt_limit_.learn(scheduler_.work().tokens, seconds_since(turn_start));
  } catch (...) {
    return end_all(std::current_exception());
  }
  {
    const std::lock_guard lock(mutex_);
    counts_.step_seconds.add(seconds_since(start));
    for (const auto& text : running_) note_first_token(*text);
  }
  for (const auto& [generation, error] : ended) {
    const auto found = std::ranges::find(running_, generation, [](const auto& text) { return text->generation.get(); });
    const std::unique_ptr<Running> text = std::move(*found);
    running_.erase(found);
    end(*text, error);
  }
  if (stopping_) end_all(shutting_down());
}

void EngineThread::end_all(const std::exception_ptr& error) {
  for (const auto& text : std::exchange(running_, {})) {
    scheduler_.remove(*text->generation);
    end(*text, error);
  }
}

void EngineThread::note_load() {
  counts_.waiting = waiting_.size();
  counts_.running = running_.size();
  counts_.kv_bytes = pool_.bytes();
}

void EngineThread::note_first_token(Running& text) {
  if (text.has_started || text.generation->in_prompt()) return;
  text.has_started = true;
  counts_.first_token_seconds.add(std::chrono::duration<double>(Clock::now() - text.submitted).count());
}

void EngineThread::end(Running& text, std::exception_ptr error) {
  Generated generated;
  generated.finish_reason = FinishReason::interrupted;
  if (text.generation) generated = text.generation->finish();
  if (text.context) pool_.release(text.context);
  {
    const std::lock_guard lock(mutex_);
    counts_.prompt_tokens += generated.prompt_tokens_done;
    counts_.cached_tokens += generated.prompt_tokens_reused;
    counts_.generated_tokens += generated.tokens.size();
    ++counts_.texts;
    if (is_gone(*text.job)) ++counts_.abandoned;
    note_load();
  }
  if (text.job->on_end) text.job->on_end(std::move(generated), std::move(error));
  text.generation.reset();
  text.job.reset();
  {
    const std::lock_guard lock(mutex_);
    if (--*text.texts_of_request == 0) --requests_;
    if (--texts_ > 0) return;
    idle_.notify_all();
  }
  on_idle_();
}

// Returns true if there is an action, run now or as soon as no text runs.
bool EngineThread::run_action() {
  std::unique_lock lock(mutex_);
  const Action* const action = action_;
  if (!action) return false;
  if (action_is_alone_ && !running_.empty()) return true;
  lock.unlock();
  std::exception_ptr error;
  try {
    (*action)(pool_);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  action_error_ = error;
  action_ = nullptr;
  idle_.notify_all();
  return true;
}

}  // namespace minimind
