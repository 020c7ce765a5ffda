#include "runtime/llm/llm.h"

#include <fmt/core.h>

#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "runtime/chat/conversation_prompt.h"
#include "runtime/constraint/grammar_constraint.h"
#include "runtime/engine/load_model.h"
#include "runtime/kernels/all_instruction_sets.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/tokenizer_generation.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

const kernels::Table& choose_f32_kernels() {
  try {
    return kernels::choose();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

auto shape_of(const Config& config) {
  return std::tuple(config.vocab_size, config.hidden_size, config.num_hidden_layers, config.num_attention_heads,
                    config.num_key_value_heads, config.head_dim, config.intermediate_size, config.num_experts,
                    config.num_experts_per_tok, config.n_shared_experts, config.moe_intermediate_size);
}

std::size_t index_of(const std::string& name, const std::vector<std::string>& names, const char* setting) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw UsageError(fmt::format("{} is {}, expected {}", setting, quote(name), alternatives(names)));
}

}  // namespace

std::vector<std::string> kv_type_names() {
  std::vector<std::string> names;
  for (const KvType type : kv_types) names.emplace_back(name_of(type));
  return names;
}

KvType parse_kv_type(const std::string& name) {
  return kv_types[index_of(name, kv_type_names(), "kv_type")];
}

std::vector<std::string> compute_names() {
  return {"f32", "bf16"};
}

Compute parse_compute(const std::string& name) {
  return index_of(name, compute_names(), "compute") == 0 ? Compute::f32 : Compute::bf16;
}

std::vector<std::string> rope_scaling_names() {
  return {"none", "yarn"};
}

bool is_yarn(const std::string& rope_scaling) {
  return index_of(rope_scaling, rope_scaling_names(), "rope_scaling") == 1;
}

std::shared_ptr<const TokenTrie> SharedTokenTrie::of(const Tokenizer& tokenizer) {
  const std::lock_guard lock(mutex_);
  if (!trie_) trie_ = make_token_trie(tokenizer);
  return trie_;
}

std::vector<Fact> tokenizer_facts(const Tokenizer& tokenizer, const Config& config) {
  std::vector<Fact> facts;
  if (const auto misfit = tokenizer_misfit(tokenizer, config)) {
    facts.push_back(
        Fact("{}: {}; text will be nonsense, so name the model's own (--tokenizer)", tokenizer.source(), *misfit));
  }
  if (tokenizer.truncates()) {
    facts.push_back(
        Fact("{}: truncation is not applied: texts keep all of their tokens, as in transformers", tokenizer.source()));
  }
  return facts;
}

std::vector<Fact> LLM::facts() const {
  std::vector<Fact> facts = model->type_fallbacks;
  if (positions > config.max_position_embeddings) {
    facts.push_back(
        Fact("a context of {} positions exceeds the model's {}", positions, config.max_position_embeddings));
  }
  if (tokenizer) std::ranges::move(tokenizer_facts(*tokenizer, config), std::back_inserter(facts));
  return facts;
}

std::vector<std::int32_t> LLM::end_tokens() const {
  return minimind::end_tokens(config, eos_was_assumed, tokenizer_or_null());
}

GenerateOptions LLM::generate_options(const GenerationParameters& parameters, bool is_answer,
                                      const std::shared_ptr<const Grammar>& grammar) const {
  GenerateOptions options;
  options.max_tokens = parameters.max_tokens;
  if (!parameters.ignore_eos) options.end_tokens = end_tokens();
  options.stop = parameters.stop;
  if (is_answer) options.text_tokens = tag_tokens;
  options.sampling = parameters.sampling;
  options.sampling.seed = parameters.seed.value_or(parameters.sampling.seed);
  // Without a tokenizer, the text is refused by whoever generates it.
  if (grammar) options.constraint = constrain_to(grammar, tokenizer ? token_trie() : nullptr);
  return options;
}

void LLM::read_text_parts(const TokenizerData& data, Tokenizer its_tokenizer, const std::string& template_path) {
  tokenizer = std::move(its_tokenizer);
  tag_tokens = answer_tag_tokens(*tokenizer);
  FoundTemplate found = template_or_family(template_path, data, config.family);
  chat_template = std::move(found.chat_template);
  template_source = std::move(found.source);
}

const kernels::Table& choose_kernels(Compute compute) {
  const kernels::Table& kernels = choose_f32_kernels();
  if (compute == Compute::f32) return kernels;
  if (const kernels::Table* const with_bf16 = kernels::with_bf16(kernels)) return *with_bf16;
  if (kernels::runnable_bf16().count > 0) {
    throw UsageError(fmt::format("compute is bf16, but the kernels are {}, expected {}; unset MINIMIND_ISA",
                                 kernels.name, kernels::runnable().front().name),
                     Setting::compute);
  }
  throw UsageError(
      "compute is bf16, but the processor has no products of bf16, expected AVX512_BF16 or AMX-BF16; use f32",
      Setting::compute);
}

LLM load_llm(const Checkpoint& checkpoint, const LLMOptions& options, HugePageArena& memory) {
  const kernels::Table& kernels = choose_kernels(options.compute);
  const std::size_t threads = options.threads.value_or(suitable_threads(checkpoint));
  Model model = load_model(checkpoint, options.type, threads, options.compute, &memory);
  const KvType kv_type = options.kv_type.value_or(suitable_kv_type(model));
  const std::size_t positions = options.positions.value_or(model.config.max_position_embeddings);
  const bool eos_was_assumed = checkpoint.sources.at("eos_token_id").kind == ConfigSource::Kind::assumed;
  const Config config = model.config;
  return {.model = std::make_shared<Model>(std::move(model)),
          .config = config,
          .kernels = kernels,
          .threads = threads,
          .kv_type = kv_type,
          .positions = positions,
          .eos_was_assumed = eos_was_assumed};
}

Model load_replacement(const Config& now, const Checkpoint& checkpoint, WeightType type, std::size_t threads,
                       Compute compute, HugePageArena& memory) {
  const Config& next = checkpoint.config;
  if (shape_of(now) != shape_of(next)) {
    throw Error(
        fmt::format("{}: is a model of another shape ({} layers of {}), expected that of the running model ({} "
                    "layers of {})",
                    checkpoint.path, next.num_hidden_layers, next.hidden_size, now.num_hidden_layers, now.hidden_size));
  }
  return load_model(checkpoint, type, threads, compute, &memory);
}

}  // namespace minimind
