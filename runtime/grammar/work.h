#pragma once

#include <cstddef>
#include <string>

#include "weights/base/error.h"

namespace minimind {

// Work on a grammar or a schema, counted in steps (states, edges, items that are looked at) and never in time, so that
// what is rejected is the same on every machine.

// The work exceeds its limit.
class TooMuchWork : public Error {
 public:
  using Error::Error;
};

// Limits the work of this thread until the end of its scope, within what the limit around it leaves.
class WorkLimit {
 public:
  // `what` starts the message of TooMuchWork: "the schema".
  WorkLimit(std::size_t most, std::string what);
  ~WorkLimit();
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  std::size_t steps() const { return steps_; }
  // Returns true if this limit is the one that TooMuchWork is about, not one around it.
  bool exceeded() const { return own_ && steps_ > most_; }

 private:
  friend void spend(std::size_t steps);
  void check();

  std::size_t steps_ = 0, most_, next_check_ = 0;
  std::string what_;
  WorkLimit* outer_;
  bool own_ = true;
};

// Work that is done once and kept for all that need it counts for none of them.
class UncountedWork {
 public:
  UncountedWork();
  ~UncountedWork();
  UncountedWork(const UncountedWork&) = delete;
  UncountedWork& operator=(const UncountedWork&) = delete;

 private:
  WorkLimit* outer_;
};

// Counts steps of this thread's work, if it has a limit. Throws TooMuchWork and Cancelled.
void spend(std::size_t steps);

}  // namespace minimind
