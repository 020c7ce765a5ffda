#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/options/options.h"
#include "tools/options/sampling_options.h"
#include "tools/options/speculation_options.h"

namespace minimind {

// The options of `minimind chat`. Defaults are those of MiniMind's eval_llm.py, except history: there it is 0.
struct ChatOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  TextOptions text;
  std::string tokenizer;
  std::string chat_template;
  std::optional<std::size_t> context;
  std::size_t max_tokens = 8192;
  SamplingArguments sampling;
  SpeculationArguments speculation;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<std::string> system;
  std::string tools;
  std::optional<bool> think;
  bool show_thinking = false;
  std::optional<std::size_t> history;  // turns before the last one that the model is shown; all, if not given
  bool no_shift = false;
  std::string session;
  std::string load;
  std::string save;
  bool turns = false;
  bool tool_result = false;
  bool json = false;

  void add_to(CLI::App& command);

  // Whether a person at a terminal is to be talked with, rather than a script.
  bool interactive() const;

  // Throws UsageError for what a call says by itself and cannot mean.
  void check() const;
};

}  // namespace minimind
