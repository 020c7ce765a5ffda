#pragma once

#include <cstddef>
#include <string>

namespace minimind {

// A file or empty folder that must not outlive this process: what is not complete, or a lock. Known until the object is
// destroyed, so that a handler of signals can remove it.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path);
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

 private:
  std::size_t slot_;
};

// Removes all of them, first the files, then the folders. May be called in a handler of signals, after which the
// process must end.
void remove_unfinished() noexcept;

}  // namespace minimind
