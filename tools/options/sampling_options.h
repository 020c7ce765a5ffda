#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/generate/sampling_options.h"
#include "tools/options/command_options.h"
#include "tools/options/grammar_options.h"

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

}  // namespace minimind
