#include "tools/serve/task_thread.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "weights/base/parallel.h"

namespace minimind {

std::thread thread_without_signals(const std::function<void()>& body) {
  const HeldSignals held;
  return std::thread(body);
}

TaskThread::TaskThread(std::size_t most_waiting, Priority priority) : most_waiting_(most_waiting) {
  thread_ = thread_without_signals([this, priority] { run(priority); });
}

TaskThread::~TaskThread() {
  stop();
  thread_.join();
}

void TaskThread::stop() {
  std::deque<Task> dropped;  // destroyed without the lock: they may hold the last of an answer
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  wake_.notify_one();
}

bool TaskThread::post(std::function<void()> task, std::size_t cost, std::function<void()> reject) {
  Task rejected;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (tasks_.size() >= most_waiting_) {
      const auto costliest = std::ranges::max_element(tasks_, {}, &Task::cost);
      if (costliest == tasks_.end() || costliest->cost <= cost || !costliest->reject) return false;
      rejected = std::move(*costliest);
      tasks_.erase(costliest);
    }
    tasks_.push_back({std::move(task), cost, std::move(reject)});
  }
  wake_.notify_one();
  if (rejected.reject) rejected.reject();
  return true;
}

TaskThread::Clock::duration TaskThread::busy_for() const {
  const std::lock_guard lock(mutex_);
  return is_busy_ ? Clock::now() - began_ : Clock::duration::zero();
}

TaskThread::Task TaskThread::take() {
  took_oldest_ = !took_oldest_;
  const auto next = took_oldest_ ? tasks_.begin() : std::ranges::min_element(tasks_, {}, &Task::cost);
  Task task = std::move(*next);
  tasks_.erase(next);
  return task;
}

void TaskThread::run(Priority priority) {
  // On Linux, 0 is this thread alone. Beside a busy thread of the engine, 10 leaves it a tenth of a core: with 5, a
  // fourth, every text would wait for it. A program that was started behind others keeps its place.
  if (priority == Priority::background) setpriority(PRIO_PROCESS, 0, std::max(10, getpriority(PRIO_PROCESS, 0)));
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = take();
    is_busy_ = true;
    began_ = Clock::now();
    lock.unlock();
    task.run();
    task = {};  // without the lock, as in stop()
    lock.lock();
    is_busy_ = false;
  }
}

}  // namespace minimind
