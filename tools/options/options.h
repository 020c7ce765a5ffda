#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/pack.h"
#include "tools/options/command_options.h"
#include "tools/options/option_checks.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

// The options of a checkpoint: which one, and overrides of its config.
struct CheckpointOptions {
  std::string model;
  std::string config;
  std::vector<std::string> loras;
  std::string rope_scaling;
  std::optional<std::size_t> heads, kv_heads, experts_per_token;

  // Adds --model, also as a positional argument, and all others.
  void add_to(CommandOptions& command);
  // Adds all except --model, for a command that names its checkpoint in another way.
  void add_reading_options(CommandOptions& command);
  OpenOptions open_options() const;
};

// Adds -m, --model and MODEL. Parsing throws UsageError if they contradict each other.
void add_model(CommandOptions& command, std::string& model, const std::string& description);

// The same for a checkpoint, without which the command takes the demo.
void add_checkpoint(CommandOptions& command, std::string& model);

// Adds --json for a command that prints one object, and --quiet.
Option* add_json(CommandOptions& command, bool& json);
void add_quiet(CommandOptions& command, bool& quiet);

// Adds --kv-type.
void add_kv_type(CommandOptions& command, std::optional<KvType>& type);

// Adds --compute.
void add_compute(CommandOptions& command, Compute& compute);

// Adds --template.
void add_template(CommandOptions& command, std::string& path);

// Adds --plain-content.
void add_plain_content(CommandOptions& command, bool& plain_content);

// The options for running a model.
struct RunOptions {
  std::string type;
  Compute compute = Compute::f32;
  std::optional<KvType> kv_type;
  std::optional<std::size_t> threads;
  bool quiet = false;

  void add_to(CommandOptions& command);
  WeightType weight_type() const;
  // The same for a second model, such as a draft, which runs as stored.
  RunOptions as_stored() const;
};

// Token ids on the command line or in a file, separated by commas, spaces or newlines, with or without brackets.
struct TokenOptions {
  std::string tokens;
  std::string tokens_file;
  bool given = false;  // either, even if it is empty

  void add_to(CommandOptions& command);
  // Throws UsageError if neither or both are given, Error if the file cannot be read.
  std::vector<std::int32_t> read() const;
};

// Text given with -p, in a file, or on standard input if neither is given; used verbatim.
struct TextOptions {
  std::string prompt{};
  bool has_prompt = false;
  std::string file;

  void add_to(CommandOptions& command);
  bool given() const { return has_prompt || !file.empty(); }
  // Throws Error if the text cannot be read or is not UTF-8.
  std::string read() const;
};

// Returns the help of an option that names the file of a text.
std::string text_file_help();

// Parses ids such as "1,2,3". Throws UsageError naming `source` and the text that is not a token id.
std::vector<std::int32_t> parse_token_ids(const std::string& text, const std::string& source);

// Returns the given --model, or the only checkpoint in it if it is a folder of checkpoints. Otherwise returns the demo:
// within the program, next to it or where `make install` puts it. Throws Error if there is none, ManyCheckpoints
// (checkpoint_choice.h) if a folder has several.
std::string model_path(const std::string& given);

// Reads all of standard input. Throws Error if it cannot be read or is too long.
std::string read_standard_input();

// Throws Error if reading standard input has failed, which streams take for its end.
void check_standard_input();

}  // namespace minimind
