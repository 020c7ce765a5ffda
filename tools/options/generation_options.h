#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
  std::size_t max_tokens = 512;
  SamplingArguments sampling;

  // Adds them. `limit` is the text of --max-tokens, which is at least `least_tokens`.
  void add_to(CommandOptions& command, const std::string& limit, std::size_t least_tokens = 1);
  // Adds all except --model, for a command that names its checkpoints in another way.
  void add_reading_options(CommandOptions& command, const std::string& limit, std::size_t least_tokens = 1);
};

// Texts of --max-tokens for commands that generate one text at once, and for those that answer requests.
std::string limit_of_a_text();
std::string limit_of_requests();

// Where a text ends: --stop and --ignore-eos.
struct EndArguments {
  std::vector<std::string> stop;
  bool ignore_eos = false;

  void add_to(CommandOptions& command);

  // Throws UsageError for a --stop that is empty or not UTF-8.
  void check() const;
};

}  // namespace minimind
