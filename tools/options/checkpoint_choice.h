#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "weights/base/error.h"

namespace minimind {

// The error for a folder that has several checkpoints.
class ManyCheckpoints : public UsageError {
 public:
  ManyCheckpoints(const std::string& message, std::vector<std::string> lines)
      : UsageError(message), lines_(std::move(lines)) {}

  // A line for each checkpoint, newest first, to print below the message.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// Returns a time, in nanoseconds since 1970, in the time zone of the machine, such as "2026-11-22 10:37" in the format
// "%Y-%m-%d %H:%M" of strftime.
std::string local_time(std::int64_t nanoseconds, const char* format);

// Returns the checkpoint that `path` means: itself, or the only one in a folder that is not a Hugging Face folder.
// Throws ManyCheckpoints if there are several, Error if there is none.
std::string the_checkpoint_in(const std::string& path);

// If `model` is a folder with several checkpoints, asks the user at the terminal to choose one and stores it in
// `model`. If `model` is empty and there is a folder `out`, as in MiniMind after a training, asks for one of its
// checkpoints or the demo, for which `model` stays empty. Returns the exit status, 0, if the user exits with Ctrl-D,
// otherwise std::nullopt.
std::optional<int> choose_checkpoint(std::string& model, std::FILE* screen);

}  // namespace minimind
