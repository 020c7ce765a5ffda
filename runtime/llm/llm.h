#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"
#include "runtime/engine/pack.h"
#include "runtime/generate/generate.h"
#include "runtime/grammar/grammar.h"
#include "runtime/grammar/token_trie.h"
#include "runtime/kernels/kernels.h"
#include "runtime/tokenizer/tokenizer.h"
#include "weights/base/fact.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// How a model is run.
struct LLMOptions {
  WeightType type{};  // of the matrices in memory
  Compute compute = Compute::f32;
  std::optional<KvType> kv_type{};         // std::nullopt: suitable_kv_type()
  std::optional<std::size_t> threads{};    // std::nullopt: suitable_threads()
  std::optional<std::size_t> positions{};  // of a text; std::nullopt: the model's
};

// The names of these settings, for the command line and the C interface. Parsing throws UsageError for another name.
std::vector<std::string> kv_type_names();
KvType parse_kv_type(const std::string& name);
std::vector<std::string> compute_names();
Compute parse_compute(const std::string& name);
std::vector<std::string> rope_scaling_names();
bool is_yarn(const std::string& rope_scaling);

// The tokens of a tokenizer as a trie, for grammars: made when the first grammar needs it.
class SharedTokenTrie {
 public:
  std::shared_ptr<const TokenTrie> of(const Tokenizer& tokenizer);

 private:
  std::mutex mutex_;
  std::shared_ptr<const TokenTrie> trie_;
};

// A loaded model with all that it is run with. Any number of threads may use it while nobody changes it; where the
// weights are replaced by others of the same shape, only `model` changes.
struct LLM {
  std::shared_ptr<Model> model;  // whoever runs the old weights shares them
  Config config;                 // the model's
  const kernels::Table& kernels;
  std::size_t threads;
  KvType kv_type;
  std::size_t positions;         // of a text
  bool eos_was_assumed = false;  // the checkpoint names no end-of-text token
  std::optional<Tokenizer> tokenizer{};
  std::optional<ChatTemplate> chat_template{};  // there is one if read_text_parts() was called
  std::string template_source{};                // where it is from; empty: it is that of the model's family
  std::vector<std::int32_t> tag_tokens{};       // answer_tag_tokens(), if read_text_parts() was called
  std::shared_ptr<SharedTokenTrie> trie = std::make_shared<SharedTokenTrie>();

  const Tokenizer* tokenizer_or_null() const { return tokenizer ? &*tokenizer : nullptr; }

  // Returns what a person should know of it besides checkpoint_notes(): matrices of another type than was asked for,
  // more positions than the model has, and those of tokenizer_facts().
  std::vector<Fact> facts() const;

  // Returns the tokens that end a text: see end_tokens() in generate.h.
  std::vector<std::int32_t> end_tokens() const;

  // Returns the options of a text with these parameters, for every command and API. The text is one of `grammar`'s,
  // unless that is null. `is_answer`: the tags of thoughts and of calls are part of the text.
  GenerateOptions generate_options(const GenerationParameters& parameters, bool is_answer,
                                   const std::shared_ptr<const Grammar>& grammar = nullptr) const;

  // For grammars. Requires a tokenizer.
  std::shared_ptr<const TokenTrie> token_trie() const { return trie->of(*tokenizer); }

  // Returns an empty context for up to `capacity` tokens. Throws Error if the memory is unavailable.
  Context context(std::size_t capacity) const { return Context(config, capacity, kv_type); }

  // Returns a Forward for batches of up to `tokens` tokens, but at most batch_tokens, in contexts of up to `positions`.
  // This must outlive it.
  Forward forward(std::size_t tokens, std::size_t with_positions) const {
    return Forward(*model, kernels, threads, std::min(tokens, batch_tokens), with_positions);
  }

  // Takes the tokenizer of `data`, and the chat template of a file, or, if that is empty, the tokenizer's or the
  // family's. Throws Error as find_template() does.
  void read_text_parts(const TokenizerData& data, Tokenizer its_tokenizer, const std::string& template_path);
};

// Returns what a person should know of a tokenizer for a model: that it is not the model's, so that text would be
// nonsense, and that its file has a truncation.
std::vector<Fact> tokenizer_facts(const Tokenizer& tokenizer, const Config& config);

// Returns the best kernels for this machine, or those that MINIMIND_ISA names. Throws UsageError if these are
// unavailable, or have no products of bf16 although `compute` requires them.
const kernels::Table& choose_kernels(Compute compute);

// Loads the weights of a checkpoint, with the matrices in `memory`. Throws as choose_kernels() and load_model() do.
LLM load_llm(const Checkpoint& checkpoint, const LLMOptions& options, HugePageArena& memory);

// Loads weights that are to replace those of a model with the configuration `now`, as load_model() does. Throws Error
// if the checkpoint has another shape.
Model load_replacement(const Config& now, const Checkpoint& checkpoint, WeightType type, std::size_t threads,
                       Compute compute, HugePageArena& memory);

}  // namespace minimind
