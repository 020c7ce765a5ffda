#pragma once

#include <stdexcept>
#include <string>

namespace minimind {

// Settings of the caller that can make the work succeed. Messages describe them in words; tools/ adds the option names.
enum class Setting {
  none,
  model,
  computation,  // all that changes what a model computes: the model, its LoRA, type and RoPE scaling
  lora,
  config,
  heads,
  experts_per_token,
  rope_scaling,
  context_size,
  kv_type,
  tokenizer
};

// A failure because of the input: a corrupt file, a missing tensor, a value out of range. The message is one line:
// "file: item is FOUND, expected WANTED; fix". Exit status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Setting setting = Setting::none)
      : std::runtime_error(message), setting_(setting) {}

  Setting setting() const { return setting_; }

 private:
  Setting setting_;
};

// A usage error: an unknown, conflicting or out-of-range option. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace minimind
