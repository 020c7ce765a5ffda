#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

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

}  // namespace minimind
