#include "tools/options/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "runtime/engine/kv_cache.h"
#include "runtime/text/utf8.h"
#include "tools/options/checkpoint_choice.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/base/quote.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"
#include "weights/tensor/weight_types.h"

namespace minimind {

namespace fs = std::filesystem;

void CheckpointOptions::add_to(CLI::App& command) {
  add_checkpoint(command, model);
  add_reading_options(command);
}

void CheckpointOptions::add_reading_options(CLI::App& command) {
  command.add_option("--config", config, "config.json to use instead of the one next to the weights");
  command.add_option("--lora", loras, "MiniMind LoRA .pth to merge, with an optional scale; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--rope-scaling", rope_scaling, "none, or yarn for MiniMind's inference_rope_scaling")
      ->transform(one_of({"none", "yarn"}));
  const CLI::Validator count = whole_number(1, 1 << 24);
  command.add_option("--heads", heads, "number of attention heads, if the checkpoint does not show it")
      ->transform(count);
  command.add_option("--kv-heads", kv_heads, "number of key-value heads, if the checkpoint does not show it")
      ->transform(count);
  command.add_option("--experts-per-token", experts_per_token, "number of experts per token")->transform(count);
}

OpenOptions CheckpointOptions::open_options() const {
  OpenOptions options;
  options.overrides = {.heads = heads, .kv_heads = kv_heads, .experts_per_token = experts_per_token, .yarn = {}};
  if (!rope_scaling.empty()) options.overrides.yarn = rope_scaling == "yarn";
  if (!config.empty()) options.config_path = config;
  for (const std::string& lora : loras) options.loras.push_back(parse_lora_argument(lora));
  return options;
}

void add_model(CLI::App& command, std::string& model, const std::string& description) {
  const auto set = [&model](const std::string& given) {
    if (!model.empty() && model != given) {
      throw UsageError(
          fmt::format("the model is given twice, as {} and as {}; give it once", quote(model), quote(given)));
    }
    model = given;
  };
  command.add_option_function<std::string>("-m,--model", set, description)->check(not_empty);
  command.add_option_function<std::string>("MODEL", set, "model file or folder, as with --model")->check(not_empty);
}

void add_checkpoint(CLI::App& command, std::string& model) {
  add_model(command, model, "a .pth, .pt, .bin, .safetensors or .gguf file, or a folder (default: the demo)");
}

void add_kv_type(CLI::App& command, std::optional<KvType>& type) {
  command
      .add_option_function<std::string>(
          "--kv-type",
          [&type](const std::string& name) {
            type = *std::ranges::find(kv_types, name, [](KvType one) { return name_of(one); });
          },
          "type of the KV cache: f32, f16 or q8_0 (default: f16 if the weights are quantised, otherwise f32)")
      ->transform(type_name(kv_type_names()));
}

void add_compute(CLI::App& command, Compute& compute) {
  command
      .add_option_function<std::string>(
          "--compute", [&compute](const std::string& name) { compute = name == "bf16" ? Compute::bf16 : Compute::f32; },
          "arithmetic of f16 and bf16 weights: f32, or bf16, which rounds activations and f16 weights to bf16 for "
          "faster prompts, if the processor has AVX512_BF16 or AMX-BF16 (default: f32)")
      ->transform(type_name({"f32", "bf16"}));
}

void RunOptions::add_to(CLI::App& command) {
  command.add_option("--type", type, "type of the weights in memory: {weight types} (default: as stored)")
      ->transform(type_name(weight_type_names()));
  add_compute(command, compute);
  add_kv_type(command, kv_type);
  command
      .add_option("-t,--threads", threads,
                  "number of threads (default: the physical cores available to this process; fewer for a tiny model)")
      ->transform(whole_number(1, 1024));
  command.add_flag("-q,--quiet", quiet, "print only errors to stderr");
}

RunOptions RunOptions::as_stored() const {
  RunOptions run = *this;
  run.type.clear();
  run.compute = Compute::f32;
  return run;
}

WeightType RunOptions::weight_type() const {
  return type.empty() ? WeightType() : parse_weight_type(type);
}

void TokenOptions::add_to(CLI::App& command) {
  command.add_option("--tokens", tokens, "token ids, e.g. 1,2,3");
  command.add_option("--tokens-file", tokens_file, "file of token ids, separated by commas, spaces or newlines");
}

std::vector<std::int32_t> TokenOptions::read() const {
  if (tokens.empty() == tokens_file.empty()) throw UsageError("give token ids with either --tokens or --tokens-file");
  const bool in_file = tokens.empty();
  const auto ids =
      parse_token_ids(in_file ? read_text_or_pipe(tokens_file) : tokens, in_file ? tokens_file : "--tokens");
  if (ids.empty())
    throw UsageError(
        fmt::format("{}: has no token ids, expected some, e.g. 1,2,3", in_file ? tokens_file : "--tokens"));
  return ids;
}

void TextOptions::add_to(CLI::App& command) {
  auto* prompt_option = command.add_option_function<std::string>(
      "-p,--prompt",
      [this](const std::string& text) {
        prompt = text;
        has_prompt = true;
      },
      "the text");
  auto* file_option = command.add_option("-f,--file", file, "file with the text (default: standard input)");
  prompt_option->excludes(file_option);
}

std::string TextOptions::read() const {
  const std::string source = has_prompt ? "--prompt" : file.empty() ? "standard input" : file;
  const std::string text = has_prompt ? prompt : file.empty() ? read_standard_input() : read_text_or_pipe(file);
  if (const auto at = first_not_utf8(text)) {
    throw Error(fmt::format("{}: is not UTF-8: byte {:#04x} at offset {}; convert it, as with iconv -f GBK -t UTF-8",
                            source, static_cast<unsigned char>(text[*at]), *at));
  }
  return text;
}

std::vector<std::int32_t> parse_token_ids(const std::string& text, const std::string& source) {
  constexpr const char* separators = ", \t\r\n[]";
  std::vector<std::int32_t> ids;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    std::int32_t id = 0;
    const auto parsed = std::from_chars(text.data() + at, text.data() + end, id);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + end) {
      throw UsageError(fmt::format("{}: {} is not a token id", source, quote(text.substr(at, end - at))));
    }
    ids.push_back(id);
    at = text.find_first_not_of(separators, end);
  }
  return ids;
}

std::string model_path(const std::string& given) {
  if (!given.empty()) {
    check_path(given);
    return the_checkpoint_in(given);
  }
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& folder : {program / "weights" / "demo", program / ".." / "share" / "minimind" / "demo"}) {
    const fs::path model = folder / "model.pth";
    if (fs::is_regular_file(model, failed)) return model.lexically_normal().string();
  }
  throw Error(
      fmt::format("the demo model is neither next to {} nor in ../share/minimind; name a "
                  "checkpoint with --model",
                  program.string()));
}

std::string read_standard_input() {
  if (isatty(STDIN_FILENO)) note("reading from the terminal; end with Ctrl-D");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

}  // namespace minimind
