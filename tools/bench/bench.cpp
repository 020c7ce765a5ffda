#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "runtime/engine/thread_team.h"
#include "tools/bench/memory.h"
#include "tools/bench/report.h"
#include "tools/bench/run.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/option_checks.h"
#include "tools/options/profiling.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

struct BenchOptions {
  CheckpointOptions checkpoint;
  std::string prompts = "512";
  std::size_t decoded = 128;
  std::string depths = "0";
  std::string texts = "1";
  bool shared_prompt = false;
  std::optional<std::string> threads;
  std::string types;
  Compute compute = Compute::f32;
  std::size_t repetitions = 5;
  std::optional<KvType> kv_type;
  bool memory = false;
  bool json = false;
  bool quiet = false;
};

constexpr std::size_t most_tokens = std::size_t{1} << 20;

// 0 prompt tokens, or 0 tokens to decode, omit that test.
std::vector<BenchTest> tests_of(const BenchOptions& options) {
  std::vector<BenchTest> tests;
  for (const std::size_t tokens : parse_counts(options.prompts, "--prompt", 0, most_tokens)) {
    if (tokens > 0) tests.push_back({BenchKind::prompt, tokens});
  }
  for (const std::size_t depth : parse_counts(options.depths, "--depth", 0, most_tokens)) {
    for (const std::size_t texts : parse_counts(options.texts, "--parallel", 1, batch_tokens)) {
      if (options.decoded == 0) continue;
      tests.push_back({BenchKind::decode, options.decoded, depth, texts});
      if (options.shared_prompt && depth >= KvCache::smallest_part && texts > 1) {
        tests.push_back({BenchKind::decode, options.decoded, depth, texts, true});
      }
    }
  }
  if (options.shared_prompt && std::ranges::none_of(tests, &BenchTest::shared_prompt)) {
    throw UsageError(
        fmt::format("--shared-prompt needs several texts and at least {} tokens before them, found --parallel {} and "
                    "--depth {}; give for example --parallel 8 --depth 1024",
                    KvCache::smallest_part, quote(options.texts), quote(options.depths)));
  }
  if (tests.empty()) throw UsageError("--prompt and --decode are both 0, expected a test; give one of them");
  return tests;
}

struct NamedType {
  std::string name;
  WeightType type;
};

std::vector<NamedType> types_of(const BenchOptions& options) {
  if (options.types.empty()) return {{"stored", std::nullopt}};
  std::vector<NamedType> types;
  for (const std::string& name : parse_list(options.types, "--type")) {
    const std::string type = parse_type_name("--type", name, weight_type_names(WeightsAre::in_memory));
    if (std::any_of(types.begin(), types.end(), [&](const NamedType& other) { return other.name == type; })) {
      throw UsageError(fmt::format("--type {}: {} is repeated", quote(options.types), type));
    }
    types.push_back({type, parse_weight_type(type, WeightsAre::in_memory)});
  }
  return types;
}

std::vector<BenchModel> load_models(const Checkpoint& checkpoint, const std::vector<NamedType>& types,
                                    const BenchOptions& options) {
  std::vector<BenchModel> models;
  for (const NamedType& type : types) {
    HugePageArena memory;
    const LLMOptions llm{
        .type = type.type, .compute = options.compute, .kv_type = options.kv_type, .threads = default_threads()};
    models.push_back({type.name, load_llm(checkpoint, llm, memory)});
    if (!options.quiet) note(models.back().llm.facts());
  }
  return models;
}

// The processor's name on x86; on ARM Linux gives only numbers.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

void say_what_is_unusual(const std::vector<BenchTest>& tests, const std::vector<std::size_t>& threads,
                         const Config& config) {
  for (const BenchTest& test : tests) {
    if (test.depth + test.tokens <= config.max_position_embeddings) continue;
    note("{} exceeds the model's context of {} positions", name_of(test), config.max_position_embeddings);
  }
  for (const std::size_t count : threads) {
    if (count > default_threads())
      note("{} threads share {}", count, counted(default_threads(), "{} core", "{} cores"));
  }
}

std::string names_of(const kernels::Table& kernels) {
  return kernels.bf16 ? fmt::format("{} and {}", kernels.name, kernels.bf16->name) : kernels.name;
}

// Those of the option; empty: suitable_threads().
std::vector<std::size_t> given_threads(const BenchOptions& options) {
  return options.threads ? parse_counts(*options.threads, "--threads", 1, 1024) : std::vector<std::size_t>();
}

Checkpoint open_with_notes(const BenchOptions& options, const kernels::Table& kernels) {
  Checkpoint checkpoint = open_checkpoint(model_path(options.checkpoint.model), options.checkpoint.open_options());
  if (!options.quiet) {
    print_notes(checkpoint, options.checkpoint.model);
    print_compute_note(kernels);
  }
  return checkpoint;
}

template <class Value>
Value only(const char* option, const std::vector<Value>& values) {
  if (values.size() == 1) return values.front();
  throw UsageError(fmt::format("--memory: {} has {} values, expected one", option, values.size()));
}

// What the program takes that generates one text.
int run_memory(const BenchOptions& options) {
  MemoryParts memory;
  const std::size_t prompt = only("--prompt", parse_counts(options.prompts, "--prompt", 1, most_tokens));
  const NamedType type = only("--type", types_of(options));
  std::vector<std::size_t> threads = given_threads(options);
  if (!threads.empty()) only("--threads", threads);
  const Checkpoint checkpoint = open_with_notes(options, choose_kernels(options.compute));
  if (threads.empty()) threads = {suitable_threads(checkpoint)};
  LLM llm = std::move(load_models(checkpoint, {type}, options).front().llm);
  llm.threads = threads.front();
  if (!options.quiet) say_what_is_unusual({{BenchKind::decode, options.decoded, prompt}}, threads, llm.config);
  memory.add("weights");
  const auto tokenizer = optional_tokenizer("", options.checkpoint.model);
  memory.add("tokenizer");

  const std::size_t positions = prompt + options.decoded;
  Context context = llm.context(positions);
  Forward forward = llm.forward(prompt, positions);
  std::vector<float> logits(llm.config.vocab_size);
  const std::vector<std::int32_t> tokens(prompt);
  for (std::size_t done = 0; done < positions;) {
    const std::size_t count = done < prompt ? std::min(forward.max_tokens(), prompt - done) : 1;
    forward.run(context, std::span(tokens).first(count), {logits.data(), 1, logits.size()});
    done += count;
  }
  memory.add("keys and values", KvCache::bytes(llm.config, llm.kv_type, positions), "a step");
  if (options.json) {
    print_output("{}\n", dump_json(memory.to_json()));
  } else {
    print_output("{}: {} + {} tokens, {} KV cache, -t {}\n\n{}", checkpoint.path, prompt, options.decoded,
                 name_of(llm.kv_type), llm.threads, memory.to_text());
  }
  return 0;
}

int run_bench_command(const BenchOptions& options) {
  if (options.memory) return run_memory(options);
  const std::vector<BenchTest> tests = tests_of(options);
  const std::vector<NamedType> types = types_of(options);
  std::vector<std::size_t> threads = given_threads(options);
  const bool profiling = profile_requested();
  const kernels::Table& kernels = choose_kernels(options.compute);
  const Checkpoint checkpoint = open_with_notes(options, kernels);
  if (threads.empty()) threads = {suitable_threads(checkpoint)};
  if (!options.quiet) say_what_is_unusual(tests, threads, checkpoint.config);

  const std::vector<BenchModel> models = load_models(checkpoint, types, options);
  const BenchPlan plan{tests, threads, options.repetitions, profiling};
  const BenchMeasurements measured = run_bench(models, plan);
  const BenchReport report{.model = checkpoint.path,
                           .family = std::string(name_of(checkpoint.config.family)),
                           .parameters = parameter_count(checkpoint),
                           .machine = processor_name(),
                           .cores = default_threads(),
                           .kernels = names_of(kernels),
                           .repetitions = options.repetitions,
                           .complete = measured.complete,
                           .results = measured.results,
                           .limits = measured.limits};
  if (options.json) {
    print_output("{}\n", dump_json(to_json(report), -1, InvalidUtf8::replace));
  } else {
    print_output("{}", to_text(report));
  }
  for (const BenchProfile& profile : measured.profiles) {
    fmt::print(stderr, "\n{}\n", profile.name);
    print_profile(profile.profile);
  }
  if (!measured.complete) note("interrupted; the results so far are printed");
  return measured.complete ? 0 : interrupted_status();
}

}  // namespace

Command add_bench(CommandOptions& command) {
  auto options = std::make_shared<BenchOptions>();
  options->checkpoint.add_to(command);
  command
      .add_option(
          "-p,--prompt", options->prompts, common_group, "N,...",
          bilingual("prompt lengths in tokens, e.g. 16,512; 0: none", "提示词长度，以词元计，如 16,512；0：不测"))
      ->capture_default_str();
  command
      .add_option("-n,--decode", options->decoded, common_group, "N",
                  bilingual("number of tokens to decode; 0: none", "解码的词元数；0：不测"))
      ->capture_default_str()
      ->transform(whole_number(0, most_tokens));
  command
      .add_option(
          "-d,--depth", options->depths, prompt_group, "N,...",
          bilingual("tokens in the KV cache before decoding, e.g. 0,1024", "解码前 KV 缓存中的词元数，如 0,1024"))
      ->capture_default_str();
  command
      .add_option("--parallel", options->texts, speed_group, "N,...",
                  bilingual("numbers of texts to decode together, e.g. 1,2,4,8,16", "同时解码的文本数，如 1,2,4,8,16"))
      ->capture_default_str();
  command.add_flag(
      "--shared-prompt", options->shared_prompt, speed_group,
      bilingual("also decode texts that share the keys and values of --depth", "另测共享 --depth 部分键和值的文本"));
  command.add_option("-t,--threads", options->threads, speed_group, "N,...",
                     bilingual("numbers of threads, e.g. 1,2 (default: the physical cores available to this process; "
                               "fewer for a tiny model)",
                               "线程数，如 1,2（默认：本进程可用的物理核数；小模型更少）"));
  command
      .add_option("--type", options->types, speed_group, "TYPE,...",
                  bilingual("types of the weights in memory, e.g. f16,q8_0: {weight types} (default: as stored)",
                            "内存中权重的类型，如 f16,q8_0：{weight types}（默认：与文件相同）"))
      ->offer(weight_type_names(WeightsAre::in_memory))
      ->check(not_empty);
  add_compute(command, options->compute);
  add_kv_type(command, options->kv_type);
  command
      .add_option("-r,--repetitions", options->repetitions, speed_group, "N",
                  bilingual("number of repetitions", "重复次数"))
      ->capture_default_str()
      ->transform(whole_number(1, 10000));
  command
      .add_flag("--memory", options->memory, speed_group,
                bilingual("in place of speeds, what a text of --prompt and --decode tokens takes of memory, by part",
                          "不测速度，改为按用途列出 --prompt 加 --decode 个词元的文本所占的内存"))
      ->excludes(command.get_option("--depth"))
      ->excludes(command.get_option("--parallel"))
      ->excludes(command.get_option("--shared-prompt"))
      ->excludes(command.get_option("--repetitions"));
  add_json(command, options->json);
  add_quiet(command, options->quiet);
  return [options] { return run_bench_command(*options); };
}

}  // namespace minimind
