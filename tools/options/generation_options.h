#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/options/command_options.h"
#include "tools/options/options.h"
#include "tools/options/sampling_options.h"

namespace minimind {

// The options that all commands which generate text have.
struct GenerationArguments {
  CheckpointOptions checkpoint;
  RunOptions run;
  std::string tokenizer;
  std::optional<std::size_t> context;
  SamplingArguments sampling;

  // Adds them. --max-tokens is at least `least_tokens`.
  void add_to(CommandOptions& command, std::size_t least_tokens = 1);
  // Adds all except --model, for a command that names its checkpoints in another way.
  void add_reading_options(CommandOptions& command, std::size_t least_tokens = 1);
};

}  // namespace minimind
