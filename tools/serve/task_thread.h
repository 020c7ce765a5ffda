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

// A thread that runs what other threads give it, and sleeps while there is nothing. Of the tasks that wait, it takes in
// turns the one that costs least and the oldest, so that many costly ones do not keep out one that is not, nor many of
// those a costly one.
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

  // Returns false after stop(), or if too many tasks wait, unless the costliest of them costs more than this one and
  // has `reject`: that is called instead, on this thread. Neither may throw. Tasks of one cost are run in order.
  bool post(std::function<void()> task, std::size_t cost = 0, std::function<void()> reject = {});

  // Drops the tasks that wait.
  void stop();

  // Returns for how long the current task has been running; zero if none does.
  Clock::duration busy_for() const;

 private:
  struct Task {
    std::function<void()> run;
    std::size_t cost = 0;
    std::function<void()> reject{};
  };
  void run(Priority priority);
  Task take();

  const std::size_t most_waiting_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool stopping_ = false, is_busy_ = false;
  bool took_oldest_ = false;  // the last time
  Clock::time_point began_;   // of the current task
  std::thread thread_;
};

}  // namespace minimind
