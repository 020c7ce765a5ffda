#pragma once

#include <string>

namespace minimind {

// Keeps other processes, also those on other machines that share the disk, from working on a file as long as this
// lives. The file need not exist and may be replaced meanwhile: what is locked is ".NAME.lock" next to it, which goes
// with the lock. The lock of a process that is killed goes with the process; then ".NAME.lock" stays for the next one.
class FileLock {
 public:
  // Throws Error, naming the process that has the lock, or why there is none to be had: the folder is not there or
  // read-only, or its file system has no locks.
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
};

}  // namespace minimind
