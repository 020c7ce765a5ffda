#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// A loaded model with the kernels, the number of threads and the type of cache to run it with.
struct Engine {
  Model model;
  const kernels::Table& kernels;
  std::size_t threads;
  KvType kv_type;
  bool eos_was_assumed;  // the checkpoint names no end-of-text token

  // Returns an empty context for up to `capacity` tokens. Throws Error if the memory is unavailable.
  Context context(std::size_t capacity) const { return Context(model.config, capacity, kv_type); }

  // Returns a Forward for batches of up to `tokens` tokens, but at most batch_tokens, in contexts of up to `positions`.
  // The engine must outlive it.
  Forward forward(std::size_t tokens, std::size_t positions) const {
    return Forward(model, kernels, threads, std::min(tokens, batch_tokens), positions);
  }
};

}  // namespace minimind
