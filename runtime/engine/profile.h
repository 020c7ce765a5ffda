#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// What a thread of a forward pass may be busy with. Additions to the residual stream count for what they add.
enum class Operation {
  embed,  // with the table of RoPE's angles
  rms_norm,
  qkv,
  rope,  // with the norms of q and k and the copy into the cache
  attention,
  o_proj,
  router,  // with the gathering of tokens by expert
  gate_up,
  activation,
  down,
  lm_head,
  barrier_wait
};
inline constexpr std::size_t operation_count = 12;

std::string_view name_of(Operation operation);

// The time of one thread, by operation. A cache line apart from those of other threads.
class alignas(64) ThreadProfile {
 public:
  using Clock = std::chrono::steady_clock;

  // The time from here on is that of the operation last entered.
  void start() noexcept { since_ = Clock::now(); }

  // The time since the last call belongs to the operation that was under way, which is returned; what follows to
  // `next`.
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
  std::vector<ThreadProfile> threads;  // those of a team may be fewer
};

// Where the time of forward passes went. Passes of a single token, which decode, are kept apart from those of several.
struct Profile {
  explicit Profile(std::size_t threads) {
    for (PassProfile* passes : {&single, &batched}) passes->threads.resize(threads);
  }

  PassProfile single, batched;
};

// Adds the pass of `tokens` tokens that goes on while this lives to a profile, which may be null.
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

// A table: for each operation the microseconds per token, the mean over the threads; its share of the whole; and those
// of each thread. What no operation accounts for is the starting and ending of the team. Lines end with a newline;
// empty when nothing was profiled.
std::string to_table(const Profile& profile);

}  // namespace minimind
