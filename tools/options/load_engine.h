#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "runtime/engine/load_model.h"
#include "runtime/engine/matrix.h"
#include "runtime/llm/engine.h"
#include "tools/options/options.h"

namespace minimind {

// Returns the best kernels for this machine, or those that MINIMIND_ISA names. Throws UsageError if these are
// unavailable, or have no products of bf16 although `compute` requires them.
const kernels::Table& choose_kernels(Compute compute);

// Prints to stderr what these kernels round, if they have products of bf16.
void print_compute_note(const kernels::Table& kernels);

// Prints to stderr what a checkpoint is and which values were assumed. `given` is the model that the user named.
void print_notes(const Checkpoint& checkpoint, const std::string& given);

// Opens and loads the checkpoint of the options. Prints its notes to stderr unless the options say quiet. Calls `use`,
// if given, with the open checkpoint.
Engine load_engine(const CheckpointOptions& checkpoint, const RunOptions& run,
                   const std::function<void(const Checkpoint&)>& use = nullptr);

// Loads the checkpoint at `path` as load_engine() does, for weights that replace those of `running`, which may run
// meanwhile. Throws Error if its model has another shape.
Model load_new_weights(const Engine& running, const std::string& path, const CheckpointOptions& checkpoint,
                       const RunOptions& run, const std::function<void(const Checkpoint&)>& use = nullptr);

// Runs all tokens in one context and calls use(first, logits) for each batch: the index of its first token, and logits
// [batch, vocab_size]. Shows progress with `label` on a terminal. Throws Error for ids outside the vocabulary.
void for_each_logits(const Engine& engine, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use);

}  // namespace minimind
