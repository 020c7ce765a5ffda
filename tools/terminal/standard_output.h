#pragma once

#include <stdexcept>
#include <string_view>

namespace minimind {

// Standard output cannot be written. No Error: nothing goes on without it.
class OutputFailure : public std::runtime_error {
 public:
  // For a reason as in errno.
  explicit OutputFailure(int error);
};

// Writes `text` on standard output at once. Throws OutputFailure.
void write_output(std::string_view text);

// Writes what was printed on standard output and waits in its buffer. Throws OutputFailure.
void flush_output();

}  // namespace minimind
