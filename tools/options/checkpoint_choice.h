#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "weights/io/error.h"

namespace minimind {

// A folder that holds several checkpoints was named: which of them is meant is not known.
class ManyCheckpoints : public UsageError {
 public:
  ManyCheckpoints(const std::string& message, std::vector<std::string> lines)
      : UsageError(message), lines_(std::move(lines)) {}

  // One for each, newest first, to be shown below the message.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// The checkpoint that `path` means: itself, or the only one in a folder that is no Hugging Face folder. Throws
// ManyCheckpoints, and Error when there is none.
std::string the_checkpoint_in(const std::string& path);

// Lets a person at the terminal choose when `model` is a folder with several checkpoints, and puts the choice there.
// Returns the exit status, 0, if the person leaves with Ctrl-D instead.
std::optional<int> choose_checkpoint(std::string& model, std::FILE* screen);

}  // namespace minimind
