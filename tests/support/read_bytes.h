#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weights/base/error.h"
#include "weights/io/input_file.h"

namespace minimind {

// Gives `reader` the path of a file in memory that holds `data`. An Error is correct; any other exception is a bug.
template <typename Reader>
void read_bytes_at_path(const std::uint8_t* data, std::size_t size, Reader reader) {
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    reader("/proc/self/fd/" + std::to_string(descriptor));
  } catch (const Error&) {
  }
  ::close(descriptor);
}

// Gives `reader` the open file instead.
template <typename Reader>
void read_bytes(const std::uint8_t* data, std::size_t size, Reader reader) {
  read_bytes_at_path(data, size, [&](const std::string& path) { reader(InputFile::open(path)); });
}

}  // namespace minimind
