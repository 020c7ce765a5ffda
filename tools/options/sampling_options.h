#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/generate/sampling_options.h"
#include "tools/options/command_options.h"
#include "tools/options/grammar_options.h"

namespace minimind {

// The sampling options of the commands that generate: --temperature to --json-schema.
struct SamplingArguments {
  SamplingOptions options;  // except those below
  std::optional<std::uint64_t> seed;
  bool greedy = false;
  std::vector<std::string> logit_bias;
  std::vector<std::string> dry_sequence_breakers;
  GrammarArguments constraint;

  void add_to(CommandOptions& command);

  // Checks the options and returns them, with a random seed if none is given. Throws UsageError.
  SamplingOptions sampling() const;

  // Loads the grammar of the text; null if none is given. Throws as GrammarArguments::load() does.
  std::shared_ptr<const Grammar> grammar(bool quiet) const { return constraint.load(true, quiet); }
};

// Parses "ID+BIAS" or "ID-BIAS", as in 15043+1, 15043-0.5 and 15043-inf. Throws UsageError.
LogitBias parse_logit_bias(const std::string& text);

}  // namespace minimind
