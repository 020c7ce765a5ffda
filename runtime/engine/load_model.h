#pragma once

#include <cstddef>

#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"
#include "runtime/engine/pack.h"
#include "weights/checkpoint/checkpoint.h"

namespace minimind {

// Returns the default type of keys and values: f32, which is exact; f16 if matrices take their inputs rounded to 8
// bits, since a rounding to 11 bits is small in comparison.
KvType suitable_kv_type(const Model& model);

// Returns the default number of threads. A thread is worth its synchronisation only if it reads some megabytes of
// weights per token.
std::size_t suitable_threads(const Checkpoint& checkpoint);

// Lays the checkpoint's weights out for the kernels. Norms and routers are kept as f32, the matrices as `type`; with
// Compute::bf16, all matrices must be f16 or bf16 then, and are bf16. Throws UsageError with Setting::arithmetic,
// naming the first that is neither. With `memory`, the matrices are in it: nothing is written there before it is
// certain that the model can be loaded, unless reading a file fails.
Model load_model(const Checkpoint& checkpoint, WeightType type, std::size_t threads, Compute compute = Compute::f32,
                 HugePageArena* memory = nullptr);

}  // namespace minimind
