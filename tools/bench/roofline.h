#pragma once

#include <cstddef>
#include <span>

#include "runtime/engine/kv_cache.h"
#include "runtime/engine/model.h"
#include "runtime/kernels/kernels.h"

namespace minimind {

// The peak speeds of the machine, each measured for at least 50 ms after one untimed pass.

// Returns the bytes per second of `threads` threads that read a non-empty buffer repeatedly, each a separate part.
double measure_reading(const kernels::Table& kernels, std::span<const float> buffer, std::size_t threads);

// Returns the floating-point operations per second of `threads` threads that multiply and add in registers only.
double measure_multiply_add(const kernels::Table& kernels, std::size_t threads);

// Returns the 8-bit integer operations per second of such threads.
double measure_multiply_add_int8(const kernels::Table& kernels, std::size_t threads);

// Returns the floating-point operations per second of such threads that multiply bf16.
double measure_multiply_add_bf16(const kernels::Bf16Products& products, std::size_t threads);

// Returns the size of the first core's largest cache; 0 if the system does not report it.
std::size_t last_level_cache_bytes();

// Returns the bytes of all weights of a model in memory.
std::size_t weight_bytes(const Model& model);

// Returns the bytes of weights that decoding one token reads: only the experts that a token passes through, and one row
// of the embedding unless it is also the output matrix.
std::size_t weight_bytes_per_token(const Model& model);

// Returns the bytes of keys and values read and written per token, the mean over `tokens` tokens decoded after `depth`
// others.
double cache_bytes_per_token(const Config& config, KvType type, std::size_t depth, std::size_t tokens);

// Returns whether matrices are multiplied as 8-bit integers.
bool multiplies_int8(const Model& model);

// Returns the operations of a prompt of `tokens` tokens: a multiplication and an addition for each weight of the layers
// and each token, and those of causal attention. Only the last token's logits are computed, so the last layer's
// weights, except those of keys and values, and the output's count once.
double prompt_flops(const Model& model, std::size_t tokens);

}  // namespace minimind
