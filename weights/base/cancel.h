#pragma once

#include <atomic>
#include <utility>

namespace minimind {

// Thrown by work that was cancelled. Not an Error, because nothing is wrong.
struct Cancelled {};

// Lets a flag cancel the work of this thread, for the lifetime of the object.
class Cancellation {
 public:
  // `flag` must outlive this.
  explicit Cancellation(const std::atomic<bool>& flag) noexcept : before_(std::exchange(flag_, &flag)) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() { flag_ = before_; }

  // Returns the flag of this thread, for threads that share its work. It is never set if there is no Cancellation.
  static const std::atomic<bool>& current() noexcept { return *flag_; }

 private:
  static inline constinit const std::atomic<bool> never_{false};
  static inline constinit thread_local const std::atomic<bool>* flag_ = &never_;

  const std::atomic<bool>* before_;
};

// Throws Cancelled if the work of this thread is cancelled. Work that may take long calls this at least every few
// milliseconds.
inline void check_cancelled() {
  if (Cancellation::current().load(std::memory_order_relaxed)) throw Cancelled();
}

}  // namespace minimind
