#include "tools/terminal/standard_output.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace minimind {

OutputFailure::OutputFailure(int error)
    : std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(error))) {}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputFailure(errno);
  flush_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw OutputFailure(errno);
}

}  // namespace minimind
