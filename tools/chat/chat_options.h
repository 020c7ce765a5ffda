#pragma once

#include <optional>
#include <string>

#include "tools/options/command_options.h"
#include "tools/options/generation_options.h"
#include "tools/options/speculation_options.h"

namespace minimind {

// The options of `minimind chat`. The defaults are those of MiniMind's eval_llm.py, except history, which is 0 there.
struct ChatOptions : GenerationArguments {
  ChatOptions() { sampling.given.max_tokens = 8192; }

  TextOptions text;
  std::string chat_template;
  bool plain_content = false;
  SpeculationArguments speculation;
  std::optional<std::string> system;
  std::string tools;
  std::optional<bool> think;
  bool show_thinking = false;
  std::optional<std::size_t> history;  // earlier turns that the model sees; std::nullopt: all
  bool no_shift = false;
  std::string session;
  std::string load;
  std::string save;
  bool turns = false;
  bool tool_result = false;
  bool json = false;

  void add_to(CommandOptions& command);

  // Whether a user at a terminal, not a script, enters the messages.
  bool interactive() const;

  // Throws UsageError for options that contradict each other.
  void check() const;
};

}  // namespace minimind
