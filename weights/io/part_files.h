#pragma once

#include <cstddef>
#include <string>

namespace minimind {

// Files under temporary names, ".NAME.PID-N.part" next to their final name NAME, so that renaming never copies. The
// writer of a part keeps it locked, see lock_part().

// Returns a new temporary name of this process for the file at `path`.
std::string part_path(const std::string& path);

// Locks a newly opened part until it is closed, so that remove_stale_parts() of other processes and machines keeps it.
// Returns false if it has already been removed, or is about to be.
bool lock_part(int descriptor);

// Removes the parts of the file at `path` that killed processes left. Keeps a part that is locked, belongs to another
// user, or is on a file system without locks. Also keeps a part if its process is another one that runs on this machine
// and ran when the part was last written. Ignores parts that cannot be removed.
void remove_stale_parts(const std::string& path);

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
