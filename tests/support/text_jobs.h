#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "runtime/llm/text_queue.h"

namespace minimind {

// The message of an exception; empty if there is none.
inline std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  }
  return "";
}

// A request of one text.
inline std::vector<TextJob> one(TextJob job) {
  std::vector<TextJob> jobs;
  jobs.push_back(std::move(job));
  return jobs;
}

}  // namespace minimind
