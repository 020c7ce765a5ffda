#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "tools/options/options.h"

namespace minimind {

// A model ready to run: loaded, laid out, kernels chosen.
struct Engine {
  Model model;
  const kernels::Table& kernels;
  std::size_t threads;
  KvType kv_type;
  bool eos_was_assumed;  // nothing that came with the checkpoint names its end-of-text token

  // Memory for a text of up to `capacity` tokens. Throws Error if it is unavailable.
  Context context(std::size_t capacity) const { return Context(model.config, capacity, kv_type); }

  // For batches of up to `tokens` tokens, but no more than batch_tokens, of contexts of up to `positions`. The engine
  // must outlive it.
  Forward forward(std::size_t tokens, std::size_t positions) const {
    return Forward(model, kernels, threads, std::min(tokens, batch_tokens), positions);
  }
};

// The best kernels for this machine, or those that MINIMIND_ISA names. Throws UsageError when these cannot be had.
const kernels::Table& choose_kernels();

// How many threads to use unless told. A thread pays off when it has some megabytes of weights to read for each token;
// below, waiting for it costs more.
std::size_t suitable_threads(const Checkpoint& checkpoint);

// Prints to standard error what a checkpoint is, and what was assumed about it: `given` is the model that was named.
void print_notes(const Checkpoint& checkpoint, const std::string& given);

// Opens and loads what the options name. Unless they say quiet, what was found and what was assumed is printed to
// standard error. `use`, if given, is called with the checkpoint while it is open.
Engine load_engine(const CheckpointOptions& checkpoint, const RunOptions& run,
                   const std::function<void(const Checkpoint&)>& use = nullptr);

// Runs all tokens as one context and hands out the logits of each batch: the index of its first token, and
// [batch, vocab_size]. Shows progress, called `label`, on a terminal. False when Ctrl-C ended it early. Throws Error
// for ids outside the vocabulary.
bool for_each_logits(const Engine& engine, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use);

}  // namespace minimind
