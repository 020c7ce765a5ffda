#pragma once
#include_next <unistd.h>

#include <fcntl.h>

inline int fdatasync(int descriptor) {
  return fsync(descriptor);
}

// The system's leaves what is written in the drive's own memory.
inline int full_fsync(int descriptor) {
  return fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : fsync(descriptor);
}
#define fsync full_fsync
