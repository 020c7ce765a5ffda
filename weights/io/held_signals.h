#pragma once

#include <csignal>

namespace minimind {

// While it lives, no signal comes to the thread that made it, nor ever to the threads that this thread starts
// meanwhile, so that a signal for the program always finds the thread that waits for it.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // The signals that were held before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

}  // namespace minimind
