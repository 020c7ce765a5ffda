#pragma once

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
  // Up to `most_waiting` tasks may wait.
  explicit TaskThread(std::size_t most_waiting);
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  // Runs all tasks that wait.
  ~TaskThread();

  // Returns false if too many tasks wait. A task must not throw.
  bool post(std::function<void()> task);

 private:
  void run();

  const std::size_t most_waiting_;
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace minimind
