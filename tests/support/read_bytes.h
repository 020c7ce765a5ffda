#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weights/io/error.h"
#include "weights/io/mapped_file.h"

namespace minimind {

// Reads `data` as a file in memory with `reader`. An Error is correct; any other exception is a bug.
template <typename Reader>
void read_bytes(const std::uint8_t* data, std::size_t size, Reader reader) {
  if (size == 0) return;
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    reader(MappedFile::open("/proc/self/fd/" + std::to_string(descriptor)));
  } catch (const Error&) {
  }
  ::close(descriptor);
}

}  // namespace minimind
