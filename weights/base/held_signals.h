#pragma once

#include <csignal>

namespace minimind {

// A block on signals: during its lifetime, the creating thread receives none. Threads started meanwhile never receive
// any, so that a signal for the program always reaches the thread that waits for it.
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

  // The previous signal mask.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

}  // namespace minimind
