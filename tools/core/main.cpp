// minimind-core continues a text: a checkpoint as MiniMind's scripts write it, the engine and the tokenizer, in one
// static program that needs nothing but the kernel. It writes the bytes that `minimind generate` writes with the same
// options.

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/engine/load_model.h"
#include "runtime/generate/generate.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "weights/base/error.h"
#include "weights/base/fact.h"
#include "weights/base/text.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

constexpr const char* usage = R"(
minimind-core MODEL [options]   MODEL: .pth, .pt, .bin, .safetensors, or a Hugging Face folder
  -p TEXT            text to continue (default: standard input)
  -n N               generate at most N tokens (default: 512)
  -t N               threads
  --type TYPE        keep weights as f32, f16, bf16 or q8_0 (default: as stored)
  --seed N           of the samples (default: 0)
  --temperature X, --top-k N, --top-p X, ... as minimind generate has them, but for DRY)";

struct Options {
  std::string model;
  std::optional<std::string> text{};
  std::size_t threads = 0;
  WeightType type{};
  GenerationParameters generation{};
};

template <class Number>
Number read(std::string_view option, std::string_view text) {
  if (const auto number = number_in<Number>(text)) return *number;
  throw UsageError(fmt::format("{} is {}, expected a number", option, quote(text)));
}

DType type_of(std::string_view name) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    if (name == name_of(type)) return type;
  }
  throw UsageError(fmt::format("--type is {}, expected f32, f16, bf16 or q8_0", quote(name)));
}

void set_number(GenerationParameters& parameters, std::string_view option, std::string_view value) {
  std::string name(option == "-n" ? "max_tokens" : option.starts_with("--") ? option.substr(2) : "");
  std::ranges::replace(name, '-', '_');
  const auto found = std::ranges::find(generation_parameters, name, &GenerationParameter::name);
  if (found == std::end(generation_parameters) || !found->is_number())
    throw UsageError(fmt::format("unknown option {}{}", quote(option), usage));
  found->set(parameters, read<double>(option, value));
}

Options parse(std::span<char* const> arguments) {
  if (arguments.size() % 2 == 0 || *arguments.front() == '-')
    throw UsageError(fmt::format("expected a model, then options with a value each{}", usage));
  Options options{.model = arguments.front()};
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view option = arguments[i], value = arguments[i + 1];
    if (option == "-p") {
      options.text = value;
    } else if (option == "-t") {
      options.threads = read<std::size_t>(option, value);
    } else if (option == "--type") {
      options.type = type_of(value);
    } else if (option == "--seed") {
      options.generation.sampling.seed = read<std::uint64_t>(option, value);
    } else {
      set_number(options.generation, option, value);
    }
  }
  return options;
}

Checkpoint open(const std::string& path) {
  CheckpointContents contents = read_contents(path, minimind_formats);
  if (!contents.lora.empty()) {
    throw Error(fmt::format("{}: has a LoRA that is not merged, which minimind-core does not do; use minimind", path));
  }
  Checkpoint checkpoint = make_checkpoint(std::move(contents), config_beside(path), {}, path);
  for (const auto& [name, source] : checkpoint.sources) {
    if (source.kind != ConfigSource::Kind::assumed) continue;
    fmt::print(stderr, "assumed {}: {}; a config.json next to the model states it\n", name, source.detail);
  }
  return checkpoint;
}

int run(const Options& options) {
  const Checkpoint checkpoint = open(options.model);
  const auto path = find_tokenizer_json(options.model);
  if (!path) throw Error(fmt::format("{}: has no tokenizer.json next to it, or in model/ or ../model/", options.model));
  const Tokenizer tokenizer(read_tokenizer_json(*path));
  const std::size_t threads = options.threads > 0 ? options.threads : suitable_threads(checkpoint);
  const Model model = load_model(checkpoint, options.type, threads);
  for (const Fact& fallback : model.type_fallbacks) fmt::print(stderr, "{}\n", fallback);
  const std::string text = options.text ? *options.text : read_text_or_pipe("/dev/stdin");
  if (text.empty()) throw Error("the prompt is empty, expected text to continue");
  const std::vector<std::int32_t> prompt = tokenizer.encode_prompt(text);

  GenerateOptions generation;
  generation.sampling = options.generation.sampling;
  generation.max_tokens = options.generation.max_tokens;
  const bool eos_was_assumed = checkpoint.sources.at("eos_token_id").kind == ConfigSource::Kind::assumed;
  generation.end_tokens = end_tokens(model.config, eos_was_assumed, &tokenizer);
  Context context(model.config, std::min(model.config.max_position_embeddings, prompt.size() + generation.max_tokens),
                  suitable_kv_type(model));
  Forward forward(model, kernels::choose(), threads, std::min(prompt.size(), batch_tokens), context.capacity());
  const auto show = [](std::string_view piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) < piece.size() || std::fflush(stdout) != 0) {
      throw Error(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
    }
  };
  generate(forward, context, &tokenizer, prompt, generation, show, std::atomic(false));
  return 0;
}

}  // namespace
}  // namespace minimind

int main(int count, char** arguments) {
  try {
    return minimind::run(minimind::parse({arguments + 1, arguments + std::max(count, 1)}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "minimind-core: {}\n", error.what());
    return dynamic_cast<const minimind::UsageError*>(&error) ? 2 : 1;
  }
}
