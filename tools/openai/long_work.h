#pragma once

namespace minimind {

// Thrown on a thread with BriefWork by a request that takes long: it is to be done again on another thread.
struct LongWork {};

// While this lives, its thread is for brief work: others wait for it.
class BriefWork {
 public:
  BriefWork();
  BriefWork(const BriefWork&) = delete;
  BriefWork& operator=(const BriefWork&) = delete;
  ~BriefWork();

  // Returns true if this thread is for brief work.
  static bool expected();

 private:
  const bool before_;
};

// Throws LongWork if this thread is for brief work.
void begin_long_work();

}  // namespace minimind
