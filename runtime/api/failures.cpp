#include "runtime/api/failures.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

namespace minimind {
namespace {

constexpr const char* no_memory = "the memory is exhausted; use a smaller type, context or batch";

}  // namespace

minimind_status status_of(const std::exception_ptr& error, std::string& message) {
  try {
    std::rethrow_exception(error);
  } catch (const Failure& failure) {
    message = failure.what();
    return failure.status();
  } catch (const UsageError& usage) {
    message = usage.what();
    return MINIMIND_BAD_ARGUMENT;
  } catch (const Error& input) {
    message = input.what();
    return MINIMIND_BAD_INPUT;
  } catch (const std::bad_alloc&) {
    message = no_memory;
    return MINIMIND_OUT_OF_MEMORY;
  } catch (const std::exception& other) {
    message = other.what();
  } catch (...) {
    message = "an exception of an unknown type";
  }
  return MINIMIND_INTERNAL;
}

minimind_status Failures::remember(const std::exception_ptr& error) const noexcept {
  try {
    std::string message;
    const minimind_status status = status_of(error, message);
    const std::lock_guard lock(mutex_);
    messages_[std::this_thread::get_id()] = std::move(message);
    return status;
  } catch (...) {  // no memory for the message
    return MINIMIND_OUT_OF_MEMORY;
  }
}

const char* Failures::message() const noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto found = messages_.find(std::this_thread::get_id());
    return found == messages_.end() ? "" : found->second.c_str();
  } catch (...) {
    return no_memory;
  }
}

minimind_status report(const std::exception_ptr& exception, minimind_error* error) noexcept {
  minimind_status status = MINIMIND_OUT_OF_MEMORY;
  std::string_view text = no_memory;
  std::string message;
  try {
    status = status_of(exception, message);
    text = message;
  } catch (...) {  // no memory for the message
  }
  if (error) {
    std::size_t size = std::min(text.size(), sizeof error->message - 1);
    // Not inside a character.
    while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    std::memcpy(error->message, text.data(), size);
    error->message[size] = '\0';
  }
  return status;
}

}  // namespace minimind
