#pragma once

#include <stdexcept>
#include <string>

namespace minimind {

// The work failed because of its input: a damaged file, a missing tensor, a value out of range. The message is one
// line that names the file, the tensor or option, what was found, what was wanted and what to do. Exit status 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The call was wrong: an option that is unknown, out of range or at odds with another. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace minimind
