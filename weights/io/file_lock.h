#pragma once

#include <optional>
#include <string>

#include "weights/io/part_files.h"

namespace minimind {

// The name of this machine in its network; empty if it has none.
std::string machine_name();

// A lock on a file against other processes, also on other machines that share the disk, for the lifetime of the object.
// The file need not exist and may be replaced meanwhile. The locked file is ".NAME.lock" next to it, which is removed
// with the lock. If the process is killed, its lock ends and ".NAME.lock" remains for the next process.
class FileLock {
 public:
  // Throws Error, naming the process that holds the lock. Throws Error, too, if locking is impossible: the folder does
  // not exist or is read-only, or its file system has no locks.
  explicit FileLock(std::string path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  bool take();
  [[noreturn]] void fail_held() const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string lock_path_;
  int descriptor_ = -1;
  std::optional<Unfinished> unfinished_;  // lock_path_
};

}  // namespace minimind
