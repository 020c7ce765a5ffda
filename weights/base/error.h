#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace minimind {

// Settings of the caller that can make the work succeed. Messages describe them in words; tools/ adds the option names.
// `identity` is all that changes what is computed: the model, its LoRA, type, RoPE scaling and arithmetic. `arithmetic`
// is that of products, with the type that it requires.
enum class Setting {
  none,
  model,
  identity,
  lora,
  config,
  heads,
  experts,
  rope_scaling,
  arithmetic,
  compute,
  context,
  kv_type,
  tokenizer
};

// A failure because of the input: a corrupt file, a missing tensor, a value out of range. The message is one line:
// "file: item is FOUND, expected WANTED; fix". Exit status 1.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string message, Setting setting = Setting::none)
      : std::runtime_error(without_nul(std::move(message))), setting_(setting) {}

  Setting setting() const { return setting_; }

 private:
  // what() would end at the zero byte of a name from a file.
  static std::string without_nul(std::string message) {
    std::replace(message.begin(), message.end(), '\0', '?');
    return message;
  }

  Setting setting_;
};

// A usage error: an unknown, conflicting or out-of-range option. Exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace minimind
