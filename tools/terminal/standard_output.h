#pragma once

#include <stdexcept>
#include <string_view>

namespace minimind {

// Standard output cannot be written. Not an Error, because no command can continue without it.
class OutputFailure : public std::runtime_error {
 public:
  // `error`: as in errno.
  explicit OutputFailure(int error);
};

// Writes `text` to stdout immediately. Throws OutputFailure.
void write_output(std::string_view text);

// Flushes the buffer of stdout. Throws OutputFailure.
void flush_output();

}  // namespace minimind
