#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace minimind {

// The operations of a forward pass. Adding a result to the residual stream counts as part of the operation that
// computed it.
enum class Operation {
  embed,  // with the table of RoPE's angles
  rms_norm,
  qkv,
  rope,  // with the norms of q and k and the copy into the cache
  attention,
  o_proj,
  router,  // and gathering tokens by expert
  gate_up,
  activation,
  down,
  lm_head,
  barrier_wait
};
inline constexpr std::size_t operation_count = 12;

// The time of one thread, by operation. Aligned, so that threads share no cache line.
class alignas(64) ThreadProfile {
 public:
  using Clock = std::chrono::steady_clock;

  // Charges time from now on to the operation last entered.
  void start() noexcept { since_ = Clock::now(); }

  // Charges the time since the last call to the current operation and time from now on to `next`. Returns the previous
  // operation.
  Operation enter(Operation next) noexcept {
    const Clock::time_point now = Clock::now();
    spent_[static_cast<std::size_t>(current_)] += now - since_;
    since_ = now;
    const Operation previous = current_;
    current_ = next;
    return previous;
  }

  double seconds(Operation operation) const {
    return std::chrono::duration<double>(spent_[static_cast<std::size_t>(operation)]).count();
  }

 private:
  std::array<Clock::duration, operation_count> spent_{};
  Operation current_ = Operation::embed;
  Clock::time_point since_;
};

// Forward passes of one kind, added up.
struct PassProfile {
  std::size_t passes = 0;
  std::size_t tokens = 0;
  double seconds = 0;                  // from the call to its return
  std::vector<ThreadProfile> threads;  // a team may have fewer
};

// Where the time of forward passes went. Passes of a single token (decode) and of several tokens are kept separately.
struct Profile {
  explicit Profile(std::size_t threads) {
    for (PassProfile* passes : {&single, &batched}) passes->threads.resize(threads);
  }

  PassProfile single, batched;
};

// Adds a pass of `tokens` tokens, which lasts as long as this object, to a profile. The profile may be null.
class ProfiledPass {
 public:
  ProfiledPass(Profile* profile, std::size_t tokens)
      : passes_(!profile      ? nullptr
                : tokens == 1 ? &profile->single
                              : &profile->batched),
        tokens_(tokens) {
    if (passes_) start_ = ThreadProfile::Clock::now();
  }
  ProfiledPass(const ProfiledPass&) = delete;
  ProfiledPass& operator=(const ProfiledPass&) = delete;
  ~ProfiledPass() {
    if (!passes_) return;
    ++passes_->passes;
    passes_->tokens += tokens_;
    passes_->seconds += std::chrono::duration<double>(ThreadProfile::Clock::now() - start_).count();
  }

  // One for each worker of the team; empty without a profile.
  std::span<ThreadProfile> threads() const {
    return passes_ ? std::span(passes_->threads) : std::span<ThreadProfile>();
  }

 private:
  PassProfile* passes_;
  std::size_t tokens_;
  ThreadProfile::Clock::time_point start_;
};

}  // namespace minimind
