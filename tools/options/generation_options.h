#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/generate/sampling_options.h"
#include "tools/options/command_options.h"
#include "tools/options/grammar_options.h"
#include "tools/options/options.h"

namespace minimind {

// The generation parameters of a command and the grammar of its texts, as options: --max-tokens to --json-schema.
struct SamplingArguments {
  GenerationParameters given;  // except what the others say
  bool greedy = false;
  std::vector<std::string> logit_bias;
  std::vector<std::string> dry_sequence_breakers;
  GrammarArguments constraint;

  // Adds all except those of add_ends_to(). --max-tokens is at least `least_tokens`.
  void add_to(CommandOptions& command, std::size_t least_tokens);
  // Adds --stop and --ignore-eos, for a command whose texts end in the same way.
  void add_ends_to(CommandOptions& command);

  // Checks the options and returns them, with a random seed if none is given. Throws UsageError.
  GenerationParameters parameters() const;

  // Loads the grammar of the text; null if none is given. Throws as GrammarArguments::load() does.
  std::shared_ptr<const Grammar> grammar(bool quiet) const { return constraint.load(true, quiet); }
};

// Parses "ID+BIAS" or "ID-BIAS", as in 15043+1, 15043-0.5 and 15043-inf. Throws UsageError.
LogitBias parse_logit_bias(const std::string& text);

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

// The options of commands that generate many texts at once: --parallel and --kv-memory.
struct ParallelArguments {
  std::size_t texts = 16;
  std::optional<std::size_t> kv_memory_mb;

  void add_to(CommandOptions& command);

  // The bytes that the keys and values of all texts may take. Prints a notice about the default unless `quiet`.
  std::size_t kv_memory(bool quiet) const;
};

// Returns count / seconds; 0 if seconds is 0.
double per_second(std::size_t count, double seconds);

// Returns the object for drafts in --json: {"drafted", "accepted", "acceptance_rate"}; the rate is null if nothing was
// drafted.
nlohmann::ordered_json speculation_json(std::size_t drafted, std::size_t accepted);

}  // namespace minimind
