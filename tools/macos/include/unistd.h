#pragma once
#include_next <unistd.h>

inline int fdatasync(int descriptor) {
  return fsync(descriptor);
}
