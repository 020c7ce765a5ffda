#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/engine/matrix.h"
#include "runtime/llm/llm.h"
#include "tools/options/generation_options.h"
#include "tools/options/options.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Prints to stderr what these kernels round, if they have products of bf16.
void print_compute_note(const kernels::Table& kernels);

// Prints to stderr what a checkpoint is and which values were assumed. `given` is the model that the user named.
void print_notes(const Checkpoint& checkpoint, const std::string& given);

// Prints to stderr where a template is from, as FoundTemplate has it.
void print_template_note(const std::string& source, Family family);

// Opens and loads the checkpoint of the options, without its tokenizer. Calls `use`, if given, with both: it may
// complete the model. Prints the notes and facts to stderr unless the options say quiet.
LLM load_llm(const CheckpointOptions& checkpoint, const RunOptions& run,
             const std::function<void(const Checkpoint&, LLM&)>& use = nullptr);

// What a command needs for its texts besides the model.
struct TextParts {
  bool requires_tokenizer = true;
  // The path of a chat template, empty for the checkpoint's or its family's; std::nullopt: none is needed.
  std::optional<std::string> chat_template{};
};

// The same with these parts, and with the context of the options: how every command that generates opens its model.
LLM load_llm(const GenerationArguments& arguments, const TextParts& parts,
             const std::function<void(const Checkpoint&)>& use = nullptr);

// Loads the checkpoint at `path` as load_llm() does, for weights that replace those of `running`, which may run
// meanwhile. Throws Error if its model has another shape.
Model load_new_weights(const LLM& running, const std::string& path, const CheckpointOptions& checkpoint,
                       const RunOptions& run, const std::function<void(const Checkpoint&)>& use = nullptr);

// Prints to stderr which token ends the text if that was assumed.
void print_assumed_end(const LLM& llm);

// Runs all tokens in one context and calls use(first, logits) for each batch: the index of its first token, and logits
// [batch, vocab_size]. Shows progress with `label` on a terminal. Throws Error for ids outside the vocabulary.
void for_each_logits(const LLM& llm, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use);

}  // namespace minimind
