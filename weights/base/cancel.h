#pragma once

#include <atomic>
#include <utility>

namespace minimind {

// Thrown by work that was cancelled. Not an Error, because nothing is wrong.
struct Cancelled {};

// Lets a flag cancel the work of this thread, for the lifetime of the object. Those of Cancellations around it still
// cancel it, too.
class Cancellation {
 public:
  // `flag` must outlive this.
  explicit Cancellation(const std::atomic<bool>& flag) noexcept
      : flag_(flag), outer_(std::exchange(innermost_, this)) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() { innermost_ = outer_; }

  // Returns true if the work of this thread is cancelled.
  static bool requested() noexcept {
    for (const Cancellation* each = innermost_; each; each = each->outer_) {
      if (each->flag_.load(std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  static inline constinit thread_local const Cancellation* innermost_ = nullptr;

  const std::atomic<bool>& flag_;
  const Cancellation* const outer_;
};

// Throws Cancelled if the work of this thread is cancelled. Work that may take long calls this at least every few
// milliseconds.
inline void check_cancelled() {
  if (Cancellation::requested()) throw Cancelled();
}

}  // namespace minimind
