#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/api/minimind.h"
#include "weights/base/error.h"

namespace minimind {

// A failure with its status.
class Failure : public Error {
 public:
  Failure(minimind_status status, const std::string& message) : Error(message), status_(status) {}
  minimind_status status() const { return status_; }

 private:
  minimind_status status_;
};

// Returns the status of an exception, and its message.
minimind_status status_of(const std::exception_ptr& error, std::string& message);

// The messages of the calls with one handle that failed: the last of each thread.
class Failures {
 public:
  // Calls work() and returns the status of what it throws. No exception leaves it.
  template <class Work>
  minimind_status guard(Work&& work) const noexcept {
    try {
      work();
      return MINIMIND_OK;
    } catch (...) {
      return remember(std::current_exception());
    }
  }

  // Valid until the calling thread's next call of guard().
  const char* message() const noexcept;

 private:
  minimind_status remember(const std::exception_ptr& error) const noexcept;

  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, std::string> messages_;
};

// Writes the message of an exception to *error, unless that is null, and returns its status.
minimind_status report(const std::exception_ptr& exception, minimind_error* error) noexcept;

// Calls open(), which makes a handle: there is none yet that could keep the message of what it throws.
template <class Open>
minimind_status opened(minimind_error* error, Open&& open) noexcept {
  try {
    open();
    return MINIMIND_OK;
  } catch (...) {
    return report(std::current_exception(), error);
  }
}

constexpr const char* no_handle = "the handle is NULL, expected one that was opened";

// Calls work() as Failures::guard() of the handle does.
template <class Handle, class Work>
minimind_status guarded(Handle* handle, Work&& work) noexcept {
  return handle ? handle->failures.guard(work) : MINIMIND_BAD_ARGUMENT;
}

template <class Handle>
const char* message_of_handle(const Handle* handle) noexcept {
  return handle ? handle->failures.message() : no_handle;
}

}  // namespace minimind
