#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/pack.h"
#include "tools/options/option_checks.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Which checkpoint, and what the caller decides over it.
struct CheckpointOptions {
  std::string model;
  std::string config;
  std::vector<std::string> loras;
  std::string rope_scaling;
  std::optional<std::size_t> heads, kv_heads, experts_per_token;

  // --model, also as a positional argument, and the rest.
  void add_to(CLI::App& command);
  // All but --model, for a command that names its checkpoint in another way.
  void add_reading_options(CLI::App& command);
  OpenOptions open_options() const;
};

// -m, --model or MODEL, which must not contradict each other. Throws UsageError while parsing if they do.
void add_model(CLI::App& command, std::string& model, const std::string& description);

// --kv-type
void add_kv_type(CLI::App& command, std::optional<KvType>& type);

// How it is run.
struct RunOptions {
  std::string type;
  std::optional<KvType> kv_type;
  std::optional<std::size_t> threads;
  bool quiet = false;

  void add_to(CLI::App& command);
  WeightType weight_type() const;
};

// Token ids given on the command line or in a file, separated by commas, blanks or lines, in brackets or not.
struct TokenOptions {
  std::string tokens;
  std::string tokens_file;

  void add_to(CLI::App& command);
  // Throws UsageError when neither or both are given, Error when the file cannot be read.
  std::vector<std::int32_t> read() const;
};

// Text given with -p, in a file, or on standard input where neither is given; exactly as it is.
struct TextOptions {
  std::string prompt;
  bool has_prompt = false;
  std::string file;

  void add_to(CLI::App& command);
  // Throws Error when it cannot be read or is not UTF-8: another text would be run than was meant.
  std::string read() const;
};

// "1,2,3". Throws UsageError that shows what is no token id, naming `source`.
std::vector<std::int32_t> parse_token_ids(const std::string& text, const std::string& source);

// The --model given, in a folder of checkpoints the only one, else the bundled one: beside the program or where `make
// install` puts it. Throws Error if there is none, ManyCheckpoints (checkpoint_choice.h) if a folder holds several.
std::string model_path(const std::string& given);

// Everything on standard input.
std::string read_standard_input();

}  // namespace minimind
