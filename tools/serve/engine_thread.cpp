#include "tools/serve/engine_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <utility>

#include "runtime/engine/thread_team.h"
#include "tools/openai/request_error.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// Of requests with several: what waits takes memory.
constexpr std::size_t most_texts = 65536;

// Tokens that a step runs at most.
std::size_t step_tokens(const EngineLimits& limits) {
  return std::max<std::size_t>(batch_tokens / 2, limits.parallel + 1);
}

// Seconds of a step with prompts: a client that is gone is to be noticed within 50 ms. While other texts come, it has a
// fourth of the tokens that take so long: each of them waits for the end of a step.
constexpr double longest_prompt_step = 0.032;
constexpr std::size_t least_prompt_tokens = 8;
constexpr std::chrono::seconds quiet_time{1};

// Steps with parts of long prompts take this much longer than others at most: Scheduler.
constexpr double longest_step = 2;

// Until the engine looks again whether texts are read, or somebody waits for their ends.
constexpr std::chrono::milliseconds unread_time{5}, hurry_time{100};

// Seconds. A step that was held up does not stop the texts of its queue for longer.
constexpr double longest_lead = 0.1;

// The times between the tokens of a text, which its functions note one at a time.
class TokenGaps {
 public:
  // A token is there, or the text goes on after it has waited to be read.
  void start() { last_ = Clock::now(); }

  // So many tokens are there.
  void note(std::size_t tokens) {
    const auto now = Clock::now();
    const std::size_t added = tokens - std::min(tokens, tokens_);
    const double gap =
        std::chrono::duration<double>(now - last_).count() / static_cast<double>(std::max<std::size_t>(added, 1));
    for (std::size_t i = 0; i < added; ++i) seconds_.add(gap);
    tokens_ = std::max(tokens, tokens_);
    last_ = now;
  }

  const Histogram& seconds() const { return seconds_; }

 private:
  using Clock = EngineThread::Clock;

  std::size_t tokens_ = 1;
  Clock::time_point last_;
  Histogram seconds_;
};

// The ids of tokens that an answer of as much work as all texts of a request has, which take a few milliseconds. A
// score, alternatives included, takes as long as 16 of them, and what each text has besides as long as 64. An answer of
// most_work_of_large takes a fourth of a second.
constexpr std::size_t most_work_at_once = 16'000, most_work_of_large = 1'000'000;

std::size_t work_of(const Generated& generated) {
  std::size_t scores = 0;
  for (const TokenScore& score : generated.prompt_scores) scores += 1 + score.top.size();
  for (const TokenScore& score : generated.scores) scores += 1 + score.top.size();
  return 64 + generated.tokens.size() + 16 * scores;
}

std::exception_ptr shutting_down() {
  return std::make_exception_ptr(RequestError("the server is shutting down", "", "unavailable"));
}

}  // namespace

EngineThread::EngineThread(const TextModel& model, const EngineLimits& limits, StepTurns& turns,
                           std::function<void()> on_idle)
    : limits_(limits),
      turns_(turns),
      on_idle_(std::move(on_idle)),
      model_(model),
      queue_(new_queue()),
      prompt_limit_(longest_prompt_step, least_prompt_tokens, queue_->forward().max_tokens()),
      huge_ends_(most_texts, TaskThread::Priority::background),
      large_ends_(most_texts, TaskThread::Priority::background) {
  counts_.kv_budget = limits.kv_memory;
  thread_ = thread_without_signals([this] { run(); });
}

std::unique_ptr<TextQueue> EngineThread::new_queue() const {
  return std::make_unique<TextQueue>(model_.llm(), TextQueueLimits{.parallel = limits_.parallel,
                                                                   .kv_memory = limits_.kv_memory,
                                                                   .step_tokens = step_tokens(limits_),
                                                                   .longest_step = longest_step});
}

EngineThread::~EngineThread() {
  stop();
  thread_.join();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return texts_ == 0; });
}

void EngineThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    stopping_ = true;
  }
  wake_.notify_one();
}

bool EngineThread::is_full() const {
  const std::lock_guard lock(mutex_);
  return has_no_room();
}

void EngineThread::check_room(const std::string& client) const {
  const std::lock_guard lock(mutex_);
  require_room(client);
}

void EngineThread::require_room(const std::string& client) const {
  if (draining_) std::rethrow_exception(shutting_down());
  if (has_no_room()) {
    throw RequestError(
        fmt::format("{} requests run or wait already, as many as the server's --parallel {} and --queue {} "
                    "allow; try again later",
                    requests_, limits_.parallel, limits_.queue),
        "", "queue_full");
  }
  const bool would_wait = requests_ >= limits_.parallel;
  const auto own = requests_of_.find(client);
  if (client.empty() || !would_wait || own == requests_of_.end()) return;
  const std::size_t free = places() - requests_;
  if (own->second < most_for_each_free * free) return;
  throw RequestError(fmt::format("{} requests of this client run or wait already, and the last {} of {} places are "
                                 "left to others; try again later",
                                 own->second, free, places()),
                     "", "queue_full");
}

void EngineThread::submit(std::vector<TextJob> jobs, const std::string& client) {
  for (const TextJob& job : jobs) {
    try {
      ContextPool::check_fits(model_.llm().config, model_.llm().kv_type, limits_.kv_memory, job.task->capacity);
    } catch (const Error& error) {
      throw RequestError(error.what(), "max_tokens", "context_length_exceeded");
    }
  }
  const auto request = std::make_shared<RequestEnd>(RequestEnd{.texts = jobs.size(), .client = client});
  for (const TextJob& job : jobs) request->bytes += bytes_of(*job.task);
  for (TextJob& job : jobs) count_end_of(job, request);  // before the engine's thread would wait for the mutex
  {
    const std::lock_guard lock(mutex_);
    require_room(client);
    if (jobs.size() > 1 && texts_ + jobs.size() > most_texts) {
      throw RequestError(fmt::format("{} texts are running or waiting already, expected at most {} with the {} of this "
                                     "request; try again later, or ask for fewer",
                                     texts_, most_texts, jobs.size()),
                         "", "queue_full");
    }
    if (request->bytes > small_request && bytes_ + request->bytes > limits_.task_memory) {
      throw RequestError(fmt::format("the requests that run or wait take {} bytes, expected at most {} with the {} of "
                                     "this one; try again later, or ask for fewer texts",
                                     bytes_, limits_.task_memory, request->bytes),
                         "", "queue_full");
    }
    const auto now = Clock::now();
    if (!has_work()) progress_ = now;
    std::size_t& own = requests_of_[client];
    submitted_.push_back(std::move(jobs));  // what follows cannot fail
    bytes_ += request->bytes;
    texts_ += request->texts;
    if (request->texts > 0) {
      ++own;
      ++requests_;
    }
  }
  wake_.notify_one();
}

// Lets the functions of a text also count it.
void EngineThread::count_end_of(TextJob& job, const std::shared_ptr<RequestEnd>& request) {
  const auto gaps = std::make_shared<TokenGaps>();
  job.on_first_token = [this, gaps, submitted = Clock::now()] {
    gaps->start();
    const std::lock_guard lock(mutex_);
    counts_.first_token_seconds.add(std::chrono::duration<double>(Clock::now() - submitted).count());
  };
  job.on_read = [gaps] { gaps->start(); };
  job.on_text = [gaps, on_text = std::move(job.on_text)](std::string_view piece, const Generation& generation) {
    gaps->note(generation.generated().size());
    if (on_text) on_text(piece, generation);
  };
  job.on_end = [this, gaps, gone = job.gone, prompt_values = job.prompt_values, request,
                on_end = std::move(job.on_end)](Generated generated, const std::exception_ptr& error) mutable {
    bool is_large = false;
    {
      const std::lock_guard lock(mutex_);
      gaps->note(generated.tokens.size());
      counts_.token_gap_seconds += gaps->seconds();
      counts_.prompt_tokens += generated.prompt_tokens_done;
      counts_.cached_tokens += generated.prompt_tokens_reused;
      counts_.generated_tokens += generated.tokens.size();
      ++counts_.texts;
      if (gone && *gone) ++counts_.abandoned;
      note_load();
      const std::size_t own = work_of(generated) + prompt_values;
      request->work += own;
      const bool is_last = --request->computed == 0;  // it makes the answer of all
      is_large = (is_last ? request->work : own) > most_work_at_once;
    }
    if (!is_large) return end_text(std::move(on_end), std::move(generated), error, *request);
    const auto held = std::make_shared<Generated>(std::move(generated));
    end_elsewhere(
        [this, held, error, request, on_end = std::make_shared<OnEnd>(std::move(on_end))] {
          end_text(std::exchange(*on_end, nullptr), std::move(*held), error, *request);
        },
        request);
  };
}

// The last end of a request makes the answer, and by then all ends are counted: only now is known how large it is.
void EngineThread::end_elsewhere(std::function<void()> end, const std::shared_ptr<const RequestEnd>& request) {
  const auto begin = [this, end, request] {
    std::unique_lock lock(mutex_);
    const bool is_huge = request->work > most_work_of_large;
    lock.unlock();
    if (!is_huge || !huge_ends_.post(end)) end();
  };
  if (!large_ends_.post(begin)) begin();
}

void EngineThread::end_text(OnEnd on_end, Generated generated, const std::exception_ptr& error, RequestEnd& request) {
  if (on_end) {
    try {
      on_end(std::move(generated), error);
    } catch (...) {  // the memory may be full: this answer fails, and no other
      if (!error) on_end({}, std::current_exception());
    }
  }
  on_end = nullptr;  // what it holds ends before the engine is idle
  {
    const std::lock_guard lock(mutex_);
    if (--request.texts == 0) {
      --requests_;
      bytes_ -= request.bytes;
      const auto own = requests_of_.find(request.client);
      if (--own->second == 0) requests_of_.erase(own);
    }
    if (--texts_ > 0) return;
    idle_.notify_all();
  }
  on_idle_();
}

void EngineThread::drain() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  refuse_replacements();
}

void EngineThread::refuse_replacements() {
  std::deque<Task> replacements;
  {
    const std::lock_guard lock(mutex_);
    replacements.swap(replacements_);
  }
  for (Task& replacement : replacements) replacement.end(shutting_down());
}

bool EngineThread::is_idle() const {
  const std::lock_guard lock(mutex_);
  return texts_ == 0;
}

bool EngineThread::wait_until_idle(std::chrono::duration<double> longest) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, longest, [this] { return texts_ == 0; });
}

void EngineThread::hurry() {
  const std::lock_guard lock(mutex_);
  hurries_until_ = Clock::now() + hurry_time;
}

// If the memory is full, this caller gets no answer, and others do.
void EngineThread::Task::end(const std::exception_ptr& error) noexcept {
  try {
    done(error);
  } catch (...) {
  }
}

void EngineThread::post(Task task, std::deque<Task>& to, const bool& refuses) {
  {
    const std::lock_guard lock(mutex_);
    if (!refuses) {
      if (!has_work()) progress_ = Clock::now();
      to.push_back(std::move(task));
      wake_.notify_one();
      return;
    }
  }
  task.end(shutting_down());
}

void EngineThread::run_between_steps(Action action, Done done) {
  post({std::move(action), std::move(done)}, actions_, stopping_);
}

void EngineThread::run_between_steps(Action action) {
  std::promise<void> ended;
  run_between_steps(std::move(action),
                    [&](const std::exception_ptr& error) { error ? ended.set_exception(error) : ended.set_value(); });
  ended.get_future().get();
}

void EngineThread::replace_weights(std::function<void()> replace, Done done) {
  post({[replace = std::move(replace)](ContextPool&) { replace(); }, std::move(done)}, replacements_, draining_);
}

bool EngineThread::waits_to_replace() const {
  const std::lock_guard lock(mutex_);
  return !replacements_.empty();
}

EngineThread::Clock::duration EngineThread::silent_for() const {
  const std::lock_guard lock(mutex_);
  return has_work() ? Clock::now() - progress_ : Clock::duration::zero();
}

EngineCounts EngineThread::counts() const {
  const std::lock_guard lock(mutex_);
  EngineCounts counts = counts_;
  for (const auto& request : submitted_) counts.waiting += request.size();
  return counts;
}

void EngineThread::run() {
  spread_team(model_.llm().threads);
  bool can_compute = true;
  while (take_work(can_compute)) {
    queue_->end_gone();
    replace_next();
    run_actions(nullptr);
    queue_->start();
    {
      const std::lock_guard lock(mutex_);
      note_load();
    }
    if (old_queue_) {
      old_queue_->end_gone();
      old_queue_->start();  // texts that have paused
    }
    can_compute = step();
    if (old_queue_ && old_queue_->texts() == 0) old_queue_.reset();
  }
  if (old_queue_) old_queue_->end_running(shutting_down());
  queue_->end_running(shutting_down());
  queue_->end_waiting(shutting_down());
  refuse_replacements();
  run_actions(shutting_down());
}

// Sleeps until there is something to do, or for a moment if the last step could compute nothing, as all texts wait to
// be read. Returns false if the engine stops.
bool EngineThread::take_work(bool can_compute) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] {
    return stopping_ || !actions_.empty() || !replacements_.empty() || !submitted_.empty();
  };
  if (queue_->texts() == 0 && !old_queue_) {
    wake_.wait(lock, has_news);
  } else if (!can_compute) {
    wake_.wait_for(lock, unread_time, has_news);
  }
  progress_ = Clock::now();
  note_arrivals();
  queue_->hurry(draining_ || has_no_room() || texts_ > most_texts / 2 || progress_ < hurries_until_);
  for (std::vector<TextJob>& request : std::exchange(submitted_, {})) queue_->submit(std::move(request));
  return !stopping_;
}

// With mutex_ locked.
void EngineThread::note_arrivals() {
  for (std::size_t i = 0; i < submitted_.size(); ++i) arrivals_ = {arrivals_[1], progress_};
  others_come_ = progress_ - arrivals_[0] < quiet_time;
}

// Texts of two queues cannot be in one batch. Each queue gets as much time as the other, whatever its steps take.
// Returns false if there is nothing to compute.
bool EngineThread::step() {
  const bool has_old = old_queue_ && old_queue_->can_compute(), has_new = queue_->can_compute();
  if (!has_old && !has_new) {
    queue_->report();  // frees what has ended
    return false;
  }
  const bool has_both = has_old && has_new, is_turn_of_old = has_old && (!has_both || lead_ > 0);
  const double seconds = step(is_turn_of_old ? *old_queue_ : *queue_);
  lead_ = has_both ? std::clamp(lead_ + (is_turn_of_old ? -seconds : seconds), -longest_lead, longest_lead) : 0;
  return true;
}

// Returns the seconds of computing.
double EngineThread::step(TextQueue& queue) {
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto start = Clock::now();
  double seconds = 0;
  try {
    const StepTurn turn(turns_);
    const auto turn_start = Clock::now();
    queue.compute(prompt_limit_.tokens(queue.work().rows, others_come_ ? 4 : 1));
    seconds = seconds_since(turn_start);
    prompt_limit_.learn(queue.work().tokens, seconds);
  } catch (...) {
    queue.end_running(std::current_exception());
    return seconds;
  }
  {
    const std::lock_guard lock(mutex_);
    counts_.step_seconds.add(seconds_since(start));
  }
  queue.report();
  return seconds;
}

void EngineThread::note_load() {
  counts_.waiting = queue_->waiting();
  counts_.running = queue_->running() + (old_queue_ ? old_queue_->running() : 0);
  counts_.kv_bytes = queue_->pool().bytes() + (old_queue_ ? old_queue_->pool().bytes() : 0);
}

// Runs those that wait, or ends them with an error.
void EngineThread::run_actions(const std::exception_ptr& error) {
  std::unique_lock lock(mutex_);
  for (std::size_t left = actions_.size(); left > 0; --left) {
    const Action& action = actions_.front().action;  // only this thread removes it
    lock.unlock();
    std::exception_ptr problem = error;
    try {
      if (!problem) action(queue_->pool());
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    {
      Task task = std::move(actions_.front());
      actions_.pop_front();
      lock.unlock();
      task.end(problem);
    }  // what it holds ends without the lock
    lock.lock();
  }
}

// Replaces the weights, unless texts run with older ones than the current ones.
void EngineThread::replace_next() {
  Task next;
  {
    const std::lock_guard lock(mutex_);
    if (replacements_.empty() || old_queue_) return;
    next = std::move(replacements_.front());
    replacements_.pop_front();
  }
  std::exception_ptr error;
  try {
    next.action(queue_->pool());
    auto with_new_weights = new_queue();
    with_new_weights->take_waiting(*queue_);
    old_queue_ = std::exchange(queue_, std::move(with_new_weights));
    if (old_queue_->texts() == 0) old_queue_.reset();
  } catch (...) {
    error = std::current_exception();
  }
  next.end(error);
}

}  // namespace minimind
