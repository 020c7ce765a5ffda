#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace minimind {

// Starts a thread that gets no signals: they are for the main thread.
std::thread thread_without_signals(const std::function<void()>& body);

// A thread that runs what other threads give it, in order, and sleeps while there is nothing.
class TaskThread {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether other threads of the program come first, where a core is too few for all.
  enum class Priority { normal, background };

  // Up to `most_waiting` tasks may wait.
  explicit TaskThread(std::size_t most_waiting, Priority priority = Priority::normal);
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  // Waits for the task that runs; those that wait are not run.
  ~TaskThread();

  // Returns false if too many tasks wait, or after stop(). A task must not throw.
  bool post(std::function<void()> task);

  // Drops the tasks that wait.
  void stop();

  // Returns for how long the current task has been running; zero if none does.
  Clock::duration busy_for() const;

 private:
  void run(Priority priority);

  const std::size_t most_waiting_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false, is_busy_ = false;
  Clock::time_point began_;  // of the current task
  std::thread thread_;
};

}  // namespace minimind
