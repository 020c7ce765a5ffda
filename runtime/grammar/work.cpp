#include "runtime/grammar/work.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "weights/base/cancel.h"

namespace minimind {
namespace {

// Whether the work is cancelled is looked at this often, within a few milliseconds.
constexpr std::size_t steps_between_checks = 10'000;

thread_local WorkLimit* innermost = nullptr;

}  // namespace

WorkLimit::WorkLimit(std::size_t most, std::string what)
    : most_(most), what_(std::move(what)), outer_(std::exchange(innermost, this)) {
  if (outer_ == nullptr) return;
  const std::size_t left = outer_->most_ - std::min(outer_->most_, outer_->steps_);
  own_ = most <= left;
  most_ = std::min(most, left);
}

WorkLimit::~WorkLimit() {
  innermost = outer_;
  if (outer_ != nullptr) outer_->steps_ += steps_;
}

void WorkLimit::check() {
  check_cancelled();
  if (steps_ > most_ && !own_) {
    outer_->steps_ += std::exchange(steps_, 0);
    outer_->check();
  }
  if (steps_ > most_) {
    throw TooMuchWork(
        fmt::format("{} takes over {} steps, expected at most that; make alternatives, constants and properties fewer, "
                    "and patterns and lengths shorter",
                    what_, most_));
  }
  next_check_ = std::min(steps_ + steps_between_checks, most_);
}

UncountedWork::UncountedWork() : outer_(std::exchange(innermost, nullptr)) {}

UncountedWork::~UncountedWork() {
  innermost = outer_;
}

void spend(std::size_t steps) {
  WorkLimit* const limit = innermost;
  if (limit == nullptr) return;
  limit->steps_ += steps;
  if (limit->steps_ > limit->next_check_) limit->check();
}

}  // namespace minimind
