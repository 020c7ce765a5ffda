#pragma once

#include <stdexcept>
#include <string>

namespace minimind {

// What the caller can set to make the work succeed. Messages describe it in words; tools add the names of its options.
enum class Setting { none, config, heads, experts_per_token, rope_scaling, context_size, kv_type, tokenizer };

// The work failed because of its input: a corrupt file, a missing tensor, a value out of range. The message is one line
// "file: item is FOUND, expected WANTED; fix". Exit status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Setting setting = Setting::none)
      : std::runtime_error(message), setting_(setting) {}

  Setting setting() const { return setting_; }

 private:
  Setting setting_;
};

// A usage error: an option that is unknown, out of range or in conflict with another. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace minimind
